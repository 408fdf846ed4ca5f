// See tables.h.
#include "compiler/planner/tables.h"

#include <algorithm>

namespace memscale::planner {

Tables::Tables(const Problem& problem) : problem_(&problem) {
  const auto n = static_cast<int32_t>(problem.ops.size());
  const size_t m = problem.storages.size();
  producer_.assign(m, -1);
  pinned_.assign(m, 0);
  tainted_.assign(m, 0);
  rerunnable_.assign(n, 1);
  base_bytes_ = problem.static_bytes;
  for (size_t s = 0; s < m; ++s) {
    pinned_[s] = problem.storages[s].resident || problem.storages[s].keep;
    if (problem.storages[s].resident) base_bytes_ += problem.storages[s].bytes;
  }

  operands_begin_.assign(n + 1, 0);
  std::vector<int32_t> last_mutation(m, -1), counts(m + 1, 0);
  time_before_.assign(n + 1, 0);
  for (int32_t i = 0; i < n; ++i) {
    const Op& op = problem.ops[i];
    time_before_[i + 1] = time_before_[i] + op.time_us;
    for (int32_t s : op.outputs) producer_[s] = i;
    for (int32_t s : op.mutates) last_mutation[s] = i;
    auto add = [&](int32_t s) {
      if (problem.storages[s].resident) return;
      operands_.push_back(s);
      ++counts[s];
    };
    for (int32_t s : op.inputs) add(s);
    for (int32_t s : op.mutates)
      if (!std::binary_search(op.inputs.begin(), op.inputs.end(), s)) add(s);
    operands_begin_[i + 1] = static_cast<int32_t>(operands_.size());
  }
  uses_begin_.assign(m + 1, 0);
  for (size_t s = 0; s < m; ++s) uses_begin_[s + 1] = uses_begin_[s] + counts[s];
  uses_.resize(operands_.size());
  std::vector<int32_t> fill(uses_begin_.begin(), uses_begin_.end() - 1);
  for (int32_t i = 0; i < n; ++i)
    for (int32_t s : operands(i)) uses_[fill[s]++] = i;

  for (int32_t i = 0; i < n; ++i) {
    const Op& op = problem.ops[i];
    bool ok = op.recomputable && op.mutates.empty();
    for (int32_t s : op.outputs) ok = ok && !problem.storages[s].keep && last_mutation[s] < 0;
    for (int32_t s : op.inputs) ok = ok && last_mutation[s] <= i;
    rerunnable_[i] = ok;
    bool taint = !ok;
    // A kept storage stays, so it shields what is computed from it.
    for (int32_t s : operands(i)) taint = taint || (tainted_[s] && !pinned_[s]);
    for (int32_t s : op.outputs) tainted_[s] = taint;
  }
  find_floors();
}

bool Tables::always_beside(int32_t storage, int32_t op) const {
  const Storage& s = problem_->storages[storage];
  const int32_t made = producer_[storage];
  if (s.resident || made < 0 || made > op) return s.resident;
  const auto used = uses(storage);
  if (made == op || s.keep || std::binary_search(used.begin(), used.end(), op)) return true;
  const Op& producer = problem_->ops[made];
  return (!producer.recomputable || !producer.mutates.empty()) && !used.empty() && used.back() > op;
}

void Tables::find_floors() {
  const Problem& p = *problem_;
  const auto n = static_cast<int32_t>(p.ops.size());
  std::vector<int64_t> beside(n + 1, 0);  // differences over ops of what is always there, operands and outputs apart
  int64_t forward_kept = 0, all_kept = 0, over_border = 0;
  for (size_t s = 0; s < p.storages.size(); ++s) {
    const int32_t made = producer_[s];
    if (made < 0) continue;
    const auto used = uses(static_cast<int32_t>(s));
    const int64_t bytes = p.storages[s].bytes;
    const bool once = !p.ops[made].recomputable || !p.ops[made].mutates.empty();
    if (p.storages[s].keep) {
      all_kept += bytes;
      if (made < p.border) forward_kept += bytes;
    } else if (once && made < p.border && !used.empty() && used.back() >= p.border) {
      over_border += bytes;
    }
    if (!p.storages[s].keep && (!once || used.empty())) continue;
    beside[made + 1] += bytes;
    beside[p.storages[s].keep ? n : used.back()] -= bytes;
    for (int32_t u : used)  // counted with the op's operands
      if (p.storages[s].keep || u < used.back()) {
        beside[u] -= bytes;
        beside[u + 1] += bytes;
      }
  }
  // Every first forward run precedes the border, so these meet there in any order.
  lower_bound_bytes_ = std::max(base_bytes_ + all_kept, base_bytes_ + forward_kept + over_border);
  order_floor_ = {base_bytes_ + all_kept, n - 1};
  int64_t now = 0;
  for (int32_t i = 0; i < n; ++i) {
    const Op& op = p.ops[i];
    now += beside[i];
    int64_t own = op.workspace_bytes, own_forward_kept = 0, shared = 0;
    for (int32_t s : operands(i)) {
      own += p.storages[s].bytes;
      if (p.storages[s].keep && producer_[s] < p.border) own_forward_kept += p.storages[s].bytes;
    }
    for (int32_t s : op.outputs) own += p.storages[s].bytes;
    for (const InPlace& c : op.inplace)
      if (!pinned_[c.input] && !std::binary_search(op.mutates.begin(), op.mutates.end(), c.input))
        shared = std::max(shared, p.storages[c.output].bytes);
    const int64_t alone = base_bytes_ + own - shared;
    lower_bound_bytes_ = std::max(lower_bound_bytes_, alone + (i >= p.border ? forward_kept - own_forward_kept : 0));
    if (alone + now > order_floor_.bytes) order_floor_ = {alone + now, i};
  }
}

}  // namespace memscale::planner

// See knapsack.h.
#include "compiler/planner/baselines/knapsack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/planner/baselines/min_cut.h"
#include "compiler/planner/baselines/segments.h"
#include "compiler/simulate/simulate.h"

namespace memscale::planner {
namespace {

constexpr int32_t kSettings = 32;
constexpr int64_t kQuanta = 10000;       // torch's resolution of the dynamic program
constexpr int64_t kCells = 200'000'000;  // of its table; more items make it coarser
constexpr double kPriceStep = 1.1;       // a saved byte costs this much more per step away from the backward pass
constexpr int32_t kFarthest = 100;
constexpr double kScale = 68719476736.0;  // 2^36: the dearest storage's capacity
constexpr std::string_view kAten = "aten::";
constexpr std::array<std::string_view, 14> kIntensive = {"mm",
                                                         "convolution",
                                                         "convolution_backward",
                                                         "bmm",
                                                         "addmm",
                                                         "baddbmm",
                                                         "_scaled_dot_product_flash_attention",
                                                         "_scaled_dot_product_efficient_attention",
                                                         "_scaled_dot_product_cudnn_attention",
                                                         "_scaled_dot_product_flash_attention_for_cpu",
                                                         "_flash_attention_forward",
                                                         "_efficient_attention_forward",
                                                         "upsample_bilinear2d",
                                                         "_scaled_mm"};

class Partitioner {
 public:
  Partitioner(const Tables& tables, const KnapsackOptions& options)
      : tables_(tables), problem_(tables.problem()), options_(options), border_(tables.problem().border) {
    find_distances();
    for (int32_t i = 0; i < border_; ++i) {
      if (!tables.rerunnable(i) || distance_of_op(i) > kUnreached || !wanted(i)) continue;
      items_.push_back(i);
    }
    // Largest first, as torch sorts them: it decides ties.
    std::stable_sort(items_.begin(), items_.end(), [this](int32_t a, int32_t b) { return bytes(a) > bytes(b); });
    for (int32_t i : items_) total_ += bytes(i);
    if (options.solver == KnapsackSolver::kDp) fill_table();
  }

  SavedBytesPlan plan(double share) {
    std::vector<char> free(border_, 0);
    for (int32_t i = 0; i < border_; ++i) free[i] = tables_.rerunnable(i);
    for (int32_t i : items_) free[i] = 0;
    for (int32_t i : options_.solver == KnapsackSolver::kDp ? recomputed_dp(share) : recomputed_greedy(share)) free[i] = 1;
    const std::vector<char> saved = cut(free);
    if (saved == last_saved_) return {last_.plan, share, last_.saved_bytes};
    SavedBytesPlan result{plan_with_saved(tables_, saved, "knapsack"), share, 0};
    for (size_t s = 0; s < saved.size(); ++s)
      if (saved[s]) result.saved_bytes += problem_.storages[s].bytes;
    last_saved_ = saved;
    last_ = result;
    return result;
  }

 private:
  static constexpr int32_t kUnreached = 1 << 30;

  int64_t bytes(int32_t op) const {
    int64_t sum = 0;
    for (int32_t s : problem_.ops[op].outputs)
      if (!tables_.uses(s).empty()) sum += problem_.storages[s].bytes;
    return sum;
  }

  /// Would torch rather save this op's outputs than run it again?
  bool wanted(int32_t i) const {
    const Op& op = problem_.ops[i];
    if (options_.items == KnapsackItems::kAll || op.rng) return true;
    std::string_view name = op.name;
    if (!name.starts_with(kAten)) return true;
    name.remove_prefix(kAten.size());
    name = name.substr(0, name.find('.'));
    if (std::find(kIntensive.begin(), kIntensive.end(), name) != kIntensive.end()) return true;
    int64_t in = 0, out = 0;
    for (int32_t s : op.inputs) in += problem_.storages[s].bytes;
    for (int32_t s : op.outputs) out += problem_.storages[s].bytes;
    return out * 4 < in;
  }

  /// Steps from each forward storage to the backward pass.
  void find_distances() {
    distance_.assign(problem_.storages.size(), kUnreached + 1);
    for (int32_t i = static_cast<int32_t>(problem_.ops.size()); i-- > 0;) {
      const int32_t own = i >= border_ ? -1 : distance_of_op(i);
      for (int32_t s : tables_.operands(i)) distance_[s] = std::min(distance_[s], own + 1);
    }
  }
  int32_t distance_of_op(int32_t i) const {
    int32_t least = kUnreached + 1;
    for (int32_t s : problem_.ops[i].outputs) least = std::min(least, distance_[s]);
    return least > kUnreached ? least : least + 1;
  }

  std::vector<int32_t> recomputed_greedy(double share) const {
    auto order = items_;
    auto value = [this](int32_t i) { return bytes(i) == 0 ? HUGE_VAL : problem_.ops[i].time_us / static_cast<double>(bytes(i)); };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return value(a) > value(b); });
    std::vector<int32_t> out;
    double room = share * static_cast<double>(total_);
    for (int32_t i : order) {
      if (static_cast<double>(bytes(i)) <= room)
        room -= static_cast<double>(bytes(i));
      else
        out.push_back(i);
    }
    return out;
  }

  void fill_table() {
    const auto n = static_cast<int64_t>(items_.size());
    quanta_ = n == 0 ? kQuanta : std::clamp<int64_t>(kCells / n, 100, kQuanta);
    std::vector<double> best(quanta_ + 1, 0);
    taken_.assign(n * (quanta_ + 1), false);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t size = weight(items_[k]);
      const double time = problem_.ops[items_[k]].time_us;
      for (int64_t j = quanta_; j >= size; --j)
        if (best[j - size] + time > best[j]) {
          best[j] = best[j - size] + time;
          taken_[k * (quanta_ + 1) + j] = true;
        }
    }
  }
  int64_t weight(int32_t op) const {
    return total_ == 0
               ? 0
               : std::llround(static_cast<double>(bytes(op)) / static_cast<double>(total_) * static_cast<double>(quanta_));
  }
  std::vector<int32_t> recomputed_dp(double share) const {
    std::vector<int32_t> out;
    int64_t j = std::llround(share * static_cast<double>(quanta_));
    for (int64_t k = static_cast<int64_t>(items_.size()); k-- > 0;) {
      if (taken_[k * (quanta_ + 1) + j])
        j -= weight(items_[k]);
      else
        out.push_back(items_[k]);
    }
    return out;
  }

  /// The storages to save if only `free` ops may run again. An op and the two ends of a storage are nodes; to cut a storage's own
  /// edge is to save it. Resident and kept storages are there anyway and bound the graph.
  std::vector<char> cut(const std::vector<char>& free) const {
    const size_t m = problem_.storages.size();
    std::vector<int32_t> node(m, -1);
    int32_t nodes = 2 + border_;
    double dearest = 1;
    auto price = [&](size_t s) {
      const int32_t steps = std::clamp(distance_[s], 1, kFarthest);
      return static_cast<double>(problem_.storages[s].bytes) * std::pow(kPriceStep, steps);
    };
    for (size_t s = 0; s < m; ++s) {
      const int32_t made = tables_.producer(static_cast<int32_t>(s));
      if (made < 0 || made >= border_ || tables_.pinned(static_cast<int32_t>(s)) || distance_[s] > kUnreached) continue;
      node[s] = nodes;
      nodes += 2;
      dearest = std::max(dearest, price(s));
    }
    constexpr int32_t kSource = 0, kSink = 1;
    MinCut graph(nodes);
    for (int32_t i = 0; i < border_; ++i)
      if (!free[i]) graph.add_edge(kSource, 2 + i, MinCut::kUncuttable);
    for (size_t s = 0; s < m; ++s) {
      if (node[s] < 0) continue;
      const auto id = static_cast<int32_t>(s);
      graph.add_edge(2 + tables_.producer(id), node[s], MinCut::kUncuttable);
      graph.add_edge(node[s], node[s] + 1, std::max<int64_t>(1, std::llround(price(s) / dearest * kScale)));
      for (int32_t u : tables_.uses(id))
        if (u < border_) graph.add_edge(node[s] + 1, 2 + u, MinCut::kUncuttable);
      if (tables_.uses(id).back() >= border_) graph.add_edge(node[s] + 1, kSink, MinCut::kUncuttable);
    }
    const std::vector<char> side = graph.source_side(kSource, kSink);
    std::vector<char> saved(m, 0);
    for (size_t s = 0; s < m; ++s) saved[s] = node[s] >= 0 && side[node[s]] && !side[node[s] + 1];
    return saved;
  }

  const Tables& tables_;
  const Problem& problem_;
  const KnapsackOptions options_;
  const int32_t border_;
  std::vector<int32_t> distance_, items_;
  int64_t total_ = 0, quanta_ = kQuanta;
  std::vector<bool> taken_;
  std::vector<char> last_saved_;
  SavedBytesPlan last_;
};

}  // namespace

Plan plan_with_saved(const Tables& tables, const std::vector<char>& saved, const char* policy) {
  const Problem& p = tables.problem();
  std::vector<char> there(p.storages.size(), 0);
  for (size_t s = 0; s < there.size(); ++s) there[s] = saved[s] || tables.pinned(static_cast<int32_t>(s));
  std::vector<Run> runs;
  for (int32_t i = 0; i < p.border; ++i) runs.push_back({i, -1});
  std::vector<int32_t> mark(p.ops.size(), -1), again, stack;
  for (int32_t i = p.border; i < static_cast<int32_t>(p.ops.size()); ++i) {
    again.clear();
    auto need = [&](int32_t op) {
      for (int32_t s : tables.operands(op)) {
        const int32_t made = tables.producer(s);
        if (there[s] || mark[made] == i) continue;
        mark[made] = i;
        again.push_back(made);
        stack.push_back(made);
      }
    };
    need(i);
    while (!stack.empty()) {
      const int32_t op = stack.back();
      stack.pop_back();
      if (!tables.rerunnable(op)) return save_all(tables);  // `saved` breaks its promise
      need(op);
    }
    std::sort(again.begin(), again.end());
    for (int32_t op : again) {
      runs.push_back({op, -1});
      for (int32_t s : p.ops[op].outputs) there[s] = 1;
    }
    runs.push_back({i, -1});
    for (int32_t s : p.ops[i].outputs) there[s] = 1;
  }
  simulate::assign_inplace(p, runs);
  auto plan = simulate::make_plan(p, std::move(runs), policy);
  if (!plan) return save_all(tables);
  plan->lower_bound_bytes = tables.lower_bound_bytes();
  return std::move(*plan);
}

SavedBytesPlan plan_by_saved_bytes(const Tables& tables, double share, const KnapsackOptions& options) {
  return Partitioner(tables, options).plan(share);
}

SavedBytesPlan knapsack(const Tables& tables, int64_t budget_bytes, const KnapsackOptions& options) {
  Partitioner partitioner(tables, options);
  std::optional<SavedBytesPlan> best;
  auto better = [&](const Plan& a, const Plan& b) {
    const bool a_fits = a.peak_bytes <= budget_bytes, b_fits = b.peak_bytes <= budget_bytes;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a.time_us < b.time_us : a.peak_bytes < b.peak_bytes;
  };
  for (int32_t k = kSettings; k >= 0; --k) {
    SavedBytesPlan next = partitioner.plan(static_cast<double>(k) / kSettings);
    if (!best || better(next.plan, best->plan)) best = std::move(next);
  }
  return std::move(*best);
}

}  // namespace memscale::planner

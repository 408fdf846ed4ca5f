// See sequence.h.
#include "compiler/planner/sequence.h"

#include <algorithm>
#include <utility>

namespace memscale::planner {
namespace {

constexpr int64_t kDeleted = int64_t{1} << 61;  // taken off the memory of a deleted run, so that it never counts
constexpr int kPasses = 4;
constexpr int kCascade = 64;  // bounds the work of a trial that is rolled back

}  // namespace

Sequence::Sequence(const Tables& tables, std::span<const int32_t> ops) : tables_(tables), ops_(ops.begin(), ops.end()) {
  const Problem& problem = tables.problem();
  const auto n = static_cast<int32_t>(ops_.size());
  alive_.assign(n, 1);
  first_.assign(n, 0);
  std::vector<char> seen(problem.ops.size(), 0);
  std::vector<int32_t> current(problem.storages.size(), -1);
  for (int32_t i = 0; i < n; ++i) {
    first_[i] = !std::exchange(seen[ops_[i]], 1);
    time_us_ += problem.ops[ops_[i]].time_us;
    slot_begin_.push_back(static_cast<int32_t>(slots_.size()));
    for (int32_t s : tables.operands(ops_[i])) {
      slots_.push_back(current[s]);
      instances_[current[s]].readers.push_back(i);
    }
    output_begin_.push_back(static_cast<int32_t>(instances_.size()));
    for (int32_t s : problem.ops[ops_[i]].outputs) {
      const auto id = static_cast<int32_t>(instances_.size());
      Instance instance{s, i, problem.storages[s].keep && current[s] < 0, {}, current[s], -1};
      if (current[s] >= 0) instances_[current[s]].next = id;
      instances_.push_back(std::move(instance));
      current[s] = id;
    }
  }
  output_begin_.push_back(static_cast<int32_t>(instances_.size()));
  slot_begin_.push_back(static_cast<int32_t>(slots_.size()));

  std::vector<int64_t> memory(n + 1, 0);
  for (int32_t id = 0; id < static_cast<int32_t>(instances_.size()); ++id) {
    memory[instances_[id].run] += problem.storages[instances_[id].storage].bytes;
    memory[end(id) + 1] -= problem.storages[instances_[id].storage].bytes;
  }
  taken_.assign(n, 0);
  int64_t live = tables.base_bytes();
  for (int32_t i = 0; i < n; ++i) {
    live += memory[i];
    taken_[i] = best_taken(i);
    memory[i] = live + problem.ops[ops_[i]].workspace_bytes - taken_[i];
  }
  memory.resize(n);
  tree_.emplace(memory);
  for (int32_t i = n; i-- > 0;)
    if (alive_[i] && unread_rerun(i)) remove(i, INT64_MAX);
  log_.clear();
}

int32_t Sequence::end(int32_t instance) const {
  const Instance& it = instances_[instance];
  if (it.kept) return static_cast<int32_t>(ops_.size()) - 1;
  return it.readers.empty() ? it.run : it.readers.back();
}

bool Sequence::unread_rerun(int32_t run) const {
  if (first_[run]) return false;
  for (int32_t id = output_begin_[run]; id < output_begin_[run + 1]; ++id)
    if (!instances_[id].readers.empty()) return false;
  return true;
}

int64_t Sequence::best_taken(int32_t run) const {
  const Op& op = tables_.problem().ops[ops_[run]];
  int64_t best = 0;
  if (op.inplace.empty()) return best;
  const auto operands = tables_.operands(ops_[run]);
  for (const InPlace& c : op.inplace) {
    const int64_t bytes = tables_.problem().storages[c.output].bytes;
    if (bytes <= best || std::binary_search(op.mutates.begin(), op.mutates.end(), c.input)) continue;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] != c.input) continue;
      const int32_t id = slots_[slot_begin_[run] + static_cast<int32_t>(k)];
      if (!instances_[id].kept && end(id) == run) best = bytes;
    }
  }
  return best;
}

void Sequence::add_memory(int32_t first, int32_t last, int64_t bytes) {
  if (first > last || bytes == 0) return;
  tree_->add(first, last, bytes);
  log_.push_back({Undo::kMemory, first, last, 0, bytes, {}});
}

void Sequence::refresh_taken(int32_t run) {
  if (run < 0 || run >= static_cast<int32_t>(ops_.size()) || !alive_[run]) return;
  const int64_t now = best_taken(run);
  if (now == taken_[run]) return;
  log_.push_back({Undo::kTaken, run, 0, 0, taken_[run], {}});
  add_memory(run, run, taken_[run] - now);
  taken_[run] = now;
}

void Sequence::set_readers(int32_t instance, std::vector<int32_t> readers) {
  const int32_t before = end(instance);
  std::swap(instances_[instance].readers, readers);
  log_.push_back({Undo::kReaders, instance, 0, 0, 0, std::move(readers)});
  const int32_t after = end(instance);
  const int64_t bytes = tables_.problem().storages[instances_[instance].storage].bytes;
  add_memory(before + 1, after, bytes);
  add_memory(after + 1, before, -bytes);
  if (before == after) return;
  refresh_taken(before);
  refresh_taken(after);
}

/// Also deletes the reruns which nobody reads then. False: the budget is still exceeded after kCascade of them.
bool Sequence::remove(int32_t run, int64_t budget_bytes) {
  std::vector<int32_t> orphans{run};
  int removed = 0;
  while (!orphans.empty()) {
    const int32_t next = orphans.back();
    orphans.pop_back();
    if (!alive_[next]) continue;
    if (removed++ > kCascade && peak_bytes() > budget_bytes) return false;
    remove_one(next, &orphans);
  }
  return peak_bytes() <= budget_bytes;
}

void Sequence::remove_one(int32_t run, std::vector<int32_t>* orphans) {
  const Problem& problem = tables_.problem();
  alive_[run] = 0;
  time_us_ -= problem.ops[ops_[run]].time_us;
  log_.push_back({Undo::kAlive, run, 0, 0, 0, {}});
  add_memory(run, run, -kDeleted);
  for (int32_t id = output_begin_[run]; id < output_begin_[run + 1]; ++id) {
    const int32_t previous = instances_[id].previous, next = instances_[id].next;
    const int64_t bytes = problem.storages[instances_[id].storage].bytes;
    add_memory(run, end(id), -bytes);
    const std::vector<int32_t> moved = instances_[id].readers;
    for (int32_t reader : moved) {
      const auto operands = tables_.operands(ops_[reader]);
      for (size_t k = 0; k < operands.size(); ++k) {
        const int32_t slot = slot_begin_[reader] + static_cast<int32_t>(k);
        if (slots_[slot] != id) continue;
        log_.push_back({Undo::kSlot, slot, id, 0, 0, {}});
        slots_[slot] = previous;
      }
    }
    log_.push_back({Undo::kReaders, id, 0, 0, 0, std::exchange(instances_[id].readers, {})});
    log_.push_back({Undo::kLink, id, previous, next, 0, {}});
    instances_[previous].next = next;
    if (next >= 0) instances_[next].previous = previous;
    std::vector<int32_t> readers = instances_[previous].readers;
    readers.insert(readers.end(), moved.begin(), moved.end());
    set_readers(previous, std::move(readers));
    if (!moved.empty()) refresh_taken(moved.back());
  }
  for (int32_t slot = slot_begin_[run]; slot < slot_begin_[run + 1]; ++slot) {
    const int32_t id = slots_[slot];
    std::vector<int32_t> readers = instances_[id].readers;
    readers.erase(std::find(readers.begin(), readers.end(), run));
    set_readers(id, std::move(readers));
    if (unread_rerun(instances_[id].run)) orphans->push_back(instances_[id].run);
  }
}

void Sequence::roll_back() {
  const Problem& problem = tables_.problem();
  while (!log_.empty()) {
    Undo& u = log_.back();
    switch (u.kind) {
      case Undo::kMemory:
        tree_->add(u.a, u.b, -u.bytes);
        break;
      case Undo::kReaders:
        instances_[u.a].readers = std::move(u.readers);
        break;
      case Undo::kSlot:
        slots_[u.a] = u.b;
        break;
      case Undo::kAlive:
        alive_[u.a] = 1;
        time_us_ += problem.ops[ops_[u.a]].time_us;
        break;
      case Undo::kLink:
        instances_[u.b].next = u.a;
        if (u.c >= 0) instances_[u.c].previous = u.a;
        break;
      case Undo::kTaken:
        taken_[u.a] = u.bytes;
        break;
    }
    log_.pop_back();
  }
}

double Sequence::key(int32_t run, GiveBackOrder order) const {
  const Problem& problem = tables_.problem();
  const double time = problem.ops[ops_[run]].time_us;
  if (order == GiveBackOrder::kTime) return time;
  double area = 1;
  for (int32_t id = output_begin_[run]; id < output_begin_[run + 1]; ++id)
    if (!instances_[id].readers.empty())
      area += static_cast<double>(problem.storages[instances_[id].storage].bytes) * (run - end(instances_[id].previous));
  return time / area;
}

void Sequence::give_back(int64_t budget_bytes, GiveBackOrder order) {
  log_.clear();
  if (peak_bytes() > budget_bytes) return;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<std::pair<double, int32_t>> candidates;
    for (int32_t i = 0; i < static_cast<int32_t>(ops_.size()); ++i)
      if (alive_[i] && !first_[i]) candidates.push_back({-key(i, order), i});
    std::sort(candidates.begin(), candidates.end());
    bool changed = false;
    for (const auto& [unused, run] : candidates) {
      if (!alive_[run]) continue;
      if (!remove(run, budget_bytes)) {
        roll_back();
        continue;
      }
      log_.clear();
      changed = true;
    }
    if (!changed) return;
  }
}

std::vector<int32_t> Sequence::ops() const {
  std::vector<int32_t> left;
  for (size_t i = 0; i < ops_.size(); ++i)
    if (alive_[i]) left.push_back(ops_[i]);
  return left;
}

}  // namespace memscale::planner

// See evict.h.
#include "compiler/planner/evict.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscale::planner {
namespace {

constexpr int kChainCap = 256;        // ops walked for the cost of a chain; longer chains are scored by this prefix
constexpr int kTaintedCap = 1 << 14;  // where an answer of "can be rebuilt" must be certain
constexpr double kTolerance = 1.02;   // a stale score may be this much too low
constexpr double kUrgent = 1e9;       // of storages that the op or the chain at hand needs
constexpr double kUnknown = -1;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

Evictor::Evictor(const Tables& tables) : tables_(tables), problem_(tables.problem()) {
  const size_t m = problem_.storages.size();
  op_mark_.assign(problem_.ops.size(), 0);
  locked_.assign(m, 0);
  supporters_.resize(m);
  leaves_.resize(m);
  support_stamp_.assign(m, 0);
}

void Evictor::reset(const Variant& variant, std::span<const double> prices, std::span<const double> multipliers,
                    const Limits& limits) {
  const size_t m = problem_.storages.size(), n = problem_.ops.size();
  variant_ = variant;
  multipliers_ = multipliers;
  limits_ = limits;
  visits_end_ = limits.work > 0 ? visits_ + limits.work : INT64_MAX;
  distance_.assign(n + 1, 0);
  for (size_t i = 0; i <= n; ++i) {
    if (variant.distance == Variant::kTime || prices.empty())
      distance_[i] = tables_.time_before(static_cast<int32_t>(i));
    else if (i > 0)
      distance_[i] = distance_[i - 1] + prices[i - 1];
  }
  soon_ = std::max(distance_[n] / (1000.0 * static_cast<double>(n + 1)), 1e-9);
  live_ = tables_.base_bytes();
  spent_us_ = 0;
  stuck_op_ = -1;
  in_memory_.assign(m, 0);
  use_at_.assign(m, 0);
  chain_refs_.assign(m, 0);
  stamp_.assign(m, 0);
  heap_ = {};
  frames_.clear();
  runs_.clear();
  holds_.assign(m, 0);
  for (size_t s = 0; s < m; ++s) {
    leaves_[s].clear();
    supporters_[s].clear();
  }
}

PassEnd Evictor::run(int64_t budget_bytes, const Variant& variant, std::span<const double> prices,
                     std::span<const double> multipliers, const Limits& limits) {
  budget_ = budget_bytes;
  limited_ = true;
  together_.clear();
  reset(variant, prices, multipliers, limits);
  return walk(nullptr);
}

PassEnd Evictor::run_fixed(const std::vector<std::vector<int32_t>>& drop_after, const std::vector<int32_t>& together,
                           const Limits& limits) {
  limited_ = false;
  together_ = together;
  members_.assign(problem_.ops.size(), {});
  for (size_t s = 0; s < together.size(); ++s)
    if (together[s] >= 0) members_[together[s]].push_back(static_cast<int32_t>(s));
  reset(Variant{}, {}, {}, limits);
  return walk(&drop_after);
}

PassEnd Evictor::walk(const std::vector<std::vector<int32_t>>* drop_after) {
  for (now_ = 0; now_ < static_cast<int32_t>(problem_.ops.size()); ++now_) {
    PassEnd end = any_missing(now_) ? rebuild_operands(now_) : PassEnd::kDone;
    if (end == PassEnd::kDone) end = execute(now_, true);
    if (end != PassEnd::kDone) {
      stuck_op_ = now_;
      return end;
    }
    if (!drop_after) continue;
    for (int32_t s : (*drop_after)[now_]) {
      if (!in_memory_[s] || tables_.pinned(s) || !wanted(s)) continue;
      if (tables_.tainted(s) && chain_cost(s, true) == kInfinite) continue;
      drop(s);
      evicted(s);
    }
  }
  return PassEnd::kDone;
}

bool Evictor::any_missing(int32_t op) const {
  for (int32_t s : tables_.operands(op))
    if (!in_memory_[s]) return true;
  return false;
}

PassEnd Evictor::rebuild_operands(int32_t op) {
  std::vector<int32_t> targets(tables_.operands(op).begin(), tables_.operands(op).end());
  for (int32_t s : tables_.operands(op)) {
    if (together_.empty() || in_memory_[s] || together_[s] < 0) continue;
    for (int32_t other : members_[together_[s]])
      if (!in_memory_[other] && next_use(other) != kNever && tables_.producer(other) < now_) targets.push_back(other);
  }
  push_frame(targets);
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.ops.size()) {
      frames_.pop_back();
      continue;
    }
    const int32_t r = frame.ops[frame.next];
    bool needed = false;
    for (int32_t o : problem_.ops[r].outputs) needed = needed || (!in_memory_[o] && wanted(o));
    if (!needed) {  // a nested chain has rebuilt it
      ++frame.next;
      for (int32_t s : tables_.operands(r)) {
        --chain_refs_[s];
        free_if_dead(s);
      }
      continue;
    }
    if (any_missing(r)) {  // dropped again to make room
      push_frame(tables_.operands(r));
      if (visits_ > visits_end_) return PassEnd::kTooLong;
      continue;
    }
    ++frame.next;
    const PassEnd end = execute(r, false);
    if (end != PassEnd::kDone) return end;
  }
  return PassEnd::kDone;
}

void Evictor::push_frame(std::span<const int32_t> targets) {
  Frame frame;
  ++mark_;
  stack_.clear();
  auto visit = [&](int32_t s) {
    const int32_t p = tables_.producer(s);
    if (in_memory_[s] || op_mark_[p] == mark_) return;
    op_mark_[p] = mark_;
    frame.ops.push_back(p);
    stack_.push_back(p);
  };
  for (int32_t s : targets) visit(s);
  while (!stack_.empty()) {
    const int32_t r = stack_.back();
    stack_.pop_back();
    ++visits_;
    for (int32_t s : tables_.operands(r)) visit(s);
  }
  std::sort(frame.ops.begin(), frame.ops.end());
  for (int32_t r : frame.ops)
    for (int32_t s : tables_.operands(r)) ++chain_refs_[s];
  frames_.push_back(std::move(frame));
}

int64_t Evictor::inplace_saving(int32_t op, bool original) const {
  const Op& o = problem_.ops[op];
  int64_t best = 0;
  for (const InPlace& c : o.inplace) {
    if (tables_.pinned(c.input) || in_memory_[c.output] || holds_[c.input] > 0) continue;
    const bool last = original ? use_at_[c.input] + 1 == tables_.uses(c.input).size() && chain_refs_[c.input] == 0
                               : next_use(c.input) == kNever && chain_refs_[c.input] == 1;
    if (!last || std::binary_search(o.mutates.begin(), o.mutates.end(), c.input)) continue;
    best = std::max(best, problem_.storages[c.output].bytes);
  }
  return best;
}

PassEnd Evictor::execute(int32_t op, bool original) {
  const Op& o = problem_.ops[op];
  ++lock_;
  for (int32_t s : tables_.operands(op)) locked_[s] = lock_;
  const int64_t saving = inplace_saving(op, original);
  int64_t fresh = 0;
  for (int32_t s : o.outputs)
    if (!in_memory_[s]) fresh += problem_.storages[s].bytes;
  const int64_t need = fresh + o.workspace_bytes - saving;
  if (visits_ > visits_end_) return PassEnd::kTooLong;
  if (limited_ && live_ + need > budget_ && !make_room(live_ + need - budget_)) return PassEnd::kNoRoom;
  live_ += fresh;
  runs_.push_back(op);
  spent_us_ += o.time_us;
  ++visits_;
  if ((limits_.time_us > 0 && spent_us_ > limits_.time_us) ||
      (limits_.runs > 0 && static_cast<int64_t>(runs_.size()) > limits_.runs))
    return PassEnd::kTooLong;
  for (int32_t s : tables_.operands(op)) original ? void(++use_at_[s]) : void(--chain_refs_[s]);
  for (int32_t s : o.outputs) {
    in_memory_[s] = 1;
    unsupport(s);
  }
  int64_t handed_over = saving;  // dead inputs of that size in all are freed below; which of them gave its block does not matter
  for (const InPlace& c : o.inplace) {
    if (handed_over == 0 || problem_.storages[c.input].bytes != handed_over) continue;
    if (!in_memory_[c.input] || tables_.pinned(c.input) || wanted(c.input) || holds_[c.input] > 0) continue;
    drop(c.input);
    handed_over = 0;
  }
  for (int32_t s : tables_.operands(op)) free_if_dead(s);
  for (int32_t s : o.outputs) free_if_dead(s);
  return PassEnd::kDone;
}

bool Evictor::make_room(int64_t bytes) {
  std::vector<int32_t> victims, busy;
  int64_t freed = 0;
  while (freed < bytes && !heap_.empty()) {
    const Entry entry = heap_.top();
    heap_.pop();
    const int32_t s = entry.storage;
    if (entry.stamp != stamp_[s] || !in_memory_[s]) continue;
    if (locked_[s] == lock_) {
      busy.push_back(s);
      continue;
    }
    double now = 0;
    if (!score(s, &now)) continue;  // cannot be rebuilt; comes back when it is used again
    if (now > entry.score * kTolerance && now > entry.score) {
      heap_.push({now, s, entry.stamp});
      continue;
    }
    drop(s);
    freed += problem_.storages[s].bytes;
    victims.push_back(s);
  }
  for (int32_t s : busy) touch(s);
  if (freed < bytes) return false;
  // Small victims taken before a large one may turn out to be needless; the dearest come last.
  for (size_t k = victims.size(); k-- > 0;) {
    const int32_t s = victims[k];
    if (freed - problem_.storages[s].bytes < bytes) continue;
    freed -= problem_.storages[s].bytes;
    live_ += problem_.storages[s].bytes;
    in_memory_[s] = 1;
    touch(s);
    victims.erase(victims.begin() + static_cast<int64_t>(k));
  }
  for (int32_t s : victims) evicted(s);
  return true;
}

int32_t Evictor::child_use(int32_t storage) const {
  int32_t first = kNever;
  const auto uses = tables_.uses(storage);
  for (size_t k = 0; k < use_at_[storage]; ++k) {
    if (!tables_.rerunnable(uses[k])) continue;
    for (int32_t o : problem_.ops[uses[k]].outputs)
      if (!in_memory_[o]) first = std::min(first, next_use(o));
  }
  return first;
}

double Evictor::chain_cost(int32_t storage, bool full) {
  const int cap = full ? kTaintedCap : kChainCap;
  int steps = 0;
  double cost = 0;
  ++mark_;
  stack_.clear();
  auto visit = [&](int32_t s, double weight) {
    const int32_t p = tables_.producer(s);
    if (op_mark_[p] == mark_) return true;
    if (!tables_.rerunnable(p)) return false;
    op_mark_[p] = mark_;
    cost += weight * problem_.ops[p].time_us;
    stack_.push_back(p);
    return true;
  };
  if (!visit(storage, 1)) return kInfinite;
  while (!stack_.empty()) {
    const int32_t r = stack_.back();
    stack_.pop_back();
    ++visits_;
    if (++steps > cap) return full ? kInfinite : cost;
    for (int32_t s : tables_.operands(r))
      if (!in_memory_[s] && !visit(s, next_use(s) != kNever ? variant_.discount : 1)) return kInfinite;
  }
  return cost;
}

bool Evictor::score(int32_t storage, double* out) {
  const int64_t bytes = problem_.storages[storage].bytes;
  int32_t use = next_use(storage);
  double weight = multipliers_.empty() ? 1 : multipliers_[storage];
  if (chain_refs_[storage] > 0 || use <= now_) {
    weight *= kUrgent;
    use = now_;
  } else if (use == kNever) {
    use = child_use(storage);
    if (holds_[storage] == 0) {
      if (use == kNever) {
        *out = 0;
        return true;
      }
      weight *= variant_.keep_dead;
    } else if (use == kNever) {
      use = now_;
    }
  }
  const double cost = chain_cost(storage, tables_.tainted(storage));
  if (cost == kInfinite) return false;
  const double far = std::max(distance_[use] - distance_[now_], soon_);
  *out = weight * cost / (static_cast<double>(bytes) * std::pow(far, variant_.distance_power));
  return true;
}

void Evictor::touch(int32_t storage) {
  if (!limited_ || problem_.storages[storage].bytes == 0 || !tables_.rerunnable(tables_.producer(storage))) return;
  heap_.push({kUnknown, storage, ++stamp_[storage]});
}

void Evictor::free_if_dead(int32_t storage) {
  if (tables_.pinned(storage)) return;
  if (!in_memory_[storage]) {
    if (!leaves_[storage].empty() && !wanted(storage)) unsupport(storage);
    return;
  }
  if (wanted(storage)) return touch(storage);
  if (holds_[storage] > 0 && chain_cost(storage, true) == kInfinite) return;
  if (variant_.keep_dead > 0 && limited_ && child_use(storage) != kNever) return touch(storage);
  drop(storage);
  if (holds_[storage] > 0) move_supporters(storage);
}

void Evictor::drop(int32_t storage) {
  in_memory_[storage] = 0;
  live_ -= problem_.storages[storage].bytes;
  ++stamp_[storage];
}

void Evictor::evicted(int32_t storage) {
  if (tables_.tainted(storage) && wanted(storage)) support(storage);
  if (holds_[storage] > 0) move_supporters(storage);
}

void Evictor::support(int32_t storage) {
  ++mark_;
  stack_.clear();
  const uint32_t stamp = ++support_stamp_[storage];
  std::vector<int32_t> leaves;
  auto push = [&](int32_t p) {
    if (op_mark_[p] == mark_) return;
    op_mark_[p] = mark_;
    stack_.push_back(p);
  };
  push(tables_.producer(storage));
  while (!stack_.empty()) {
    const int32_t r = stack_.back();
    stack_.pop_back();
    ++visits_;
    for (int32_t s : tables_.operands(r)) {
      if (tables_.pinned(s) || !tables_.tainted(s)) continue;
      if (in_memory_[s])
        leaves.push_back(s);
      else
        push(tables_.producer(s));
    }
  }
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  for (int32_t z : leaves) {
    ++holds_[z];
    supporters_[z].push_back({storage, stamp});
  }
  leaves_[storage] = std::move(leaves);
}

void Evictor::unsupport(int32_t storage) {
  if (leaves_[storage].empty()) return;
  const std::vector<int32_t> leaves = std::move(leaves_[storage]);
  leaves_[storage].clear();
  ++support_stamp_[storage];
  for (int32_t z : leaves)
    if (--holds_[z] == 0 && in_memory_[z] && !wanted(z)) free_if_dead(z);
}

void Evictor::move_supporters(int32_t storage) {
  const auto supporters = std::move(supporters_[storage]);
  supporters_[storage].clear();
  for (const auto& [y, stamp] : supporters) {
    if (support_stamp_[y] != stamp || in_memory_[y]) continue;
    const std::vector<int32_t> before = std::move(leaves_[y]);
    leaves_[y].clear();
    support(y);
    for (int32_t z : before)
      if (--holds_[z] == 0 && z != storage && in_memory_[z] && !wanted(z)) free_if_dead(z);
  }
}

}  // namespace memscale::planner

// See online.h. The order of what happens in an op follows the authors' simulator (simrd, uwsampl/dtr-prototype).
#include "compiler/planner/baselines/online.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "compiler/planner/baselines/neighbourhood.h"
#include "compiler/simulate/simulate.h"

namespace memscale::planner {
namespace {

constexpr int64_t kRunFactor = 100;  // runs per op: ops that take no time must not run for ever
constexpr int64_t kStepCost = 4;     // of one storage walked over, in looks at a score
constexpr double kInfinite = std::numeric_limits<double>::infinity();

Cost cost_of(Score score) {
  switch (score) {
    case Score::kDtr:
      return Cost::kExact;
    case Score::kDtrEq:
      return Cost::kClasses;
    case Score::kDtrLocal:
      return Cost::kLocal;
    case Score::kMsps:
      return Cost::kAncestors;
    default:
      return Cost::kNone;
  }
}

class Machine {
 public:
  Machine(const Tables& tables, int64_t budget, const OnlineOptions& options)
      : tables_(tables),
        problem_(tables.problem()),
        options_(options),
        budget_(budget),
        around_(tables, cost_of(options.score)),
        random_(options.seed) {
    const size_t n = problem_.ops.size(), m = problem_.storages.size();
    time_limit_us_ = options.time_factor * tables.time_before(static_cast<int32_t>(n)) * (1 + 1e-9);
    run_limit_ = kRunFactor * static_cast<int64_t>(n) + 1000;
    live_ = result_.online_peak_bytes = tables.base_bytes();
    for (auto* flags : {&in_memory_, &dead_, &fixed_}) flags->assign(m, 0);
    for (auto* counts : {&locks_, &evicted_children_}) counts->assign(m, 0);
    place_.assign(m, -1);
    entered_.assign(m, 0);
    last_access_us_.assign(m, 0);
    ran_.assign(n, 0);
    mark_.assign(m, 0);
  }

  OnlineResult run() {
    for (now_ = 0; now_ < static_cast<int32_t>(problem_.ops.size()); ++now_) {
      for (int32_t s : std::exchange(blocked_, {})) offer(s);
      result_.end = materialize(now_);
      if (result_.end != OnlineEnd::kDone) {
        result_.stuck_op = now_;
        break;
      }
      release_after(now_);
    }
    result_.time_us = clock_us_;
    if (result_.end == OnlineEnd::kDone) finish();
    return std::move(result_);
  }

 private:
  struct Frame {
    int32_t op;
    int32_t target;                // the output that was asked for
    std::vector<int32_t> missing;  // operands that were not there when the op was asked for
    size_t next = 0;
  };

  /// Runs the op, its missing operands' producers first, and so on.
  OnlineEnd materialize(int32_t op) {
    push(op, problem_.ops[op].outputs.empty() ? -1 : problem_.ops[op].outputs[0]);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      while (frame.next < frame.missing.size() && in_memory_[frame.missing[frame.next]]) lock(frame.missing[frame.next++]);
      if (frame.next < frame.missing.size()) {
        const int32_t target = frame.missing[frame.next];
        push(tables_.producer(target), target);
        continue;
      }
      const int32_t current = frame.op;
      if (const OnlineEnd end = compute(current, frame.target, frames_.size() == 1); end != OnlineEnd::kDone) return end;
      frames_.pop_back();
      for (int32_t s : tables_.operands(current)) unlock(s);
      if (options_.deallocation == Deallocation::kBanish)
        for (int32_t s : tables_.operands(current)) try_banish(s);
    }
    return OnlineEnd::kDone;
  }

  void push(int32_t op, int32_t target) {
    Frame frame{op, target, {}};
    for (int32_t s : tables_.operands(op)) {
      last_access_us_[s] = clock_us_;
      in_memory_[s] ? lock(s) : frame.missing.push_back(s);
    }
    frames_.push_back(std::move(frame));
  }

  OnlineEnd compute(int32_t op, int32_t target, bool original) {
    const Op& o = problem_.ops[op];
    int64_t need = o.workspace_bytes;
    for (int32_t s : o.outputs) need += problem_.storages[s].bytes;
    if (live_ + need > budget_) free_held();
    while (live_ + need - (original ? inplace_saving(op) : 0) > budget_) {
      if (!evict_one()) return OnlineEnd::kOutOfMemory;
      if (result_.evaluations + kStepCost * around_.steps() > options_.evaluations) return OnlineEnd::kTooMuchWork;
    }
    result_.online_peak_bytes = std::max(result_.online_peak_bytes, live_ + need - (original ? inplace_saving(op) : 0));
    clock_us_ += o.time_us;
    if (!original) rerun_us_ += o.time_us;
    runs_.push_back({op, -1});
    for (int32_t s : o.outputs) {
      if (original) last_access_us_[s] = clock_us_;
      if (in_memory_[s] || fixed_[s] == kBanished) continue;  // computed in passing; the copy goes at once
      in_memory_[s] = 1;
      live_ += problem_.storages[s].bytes;
      if (ran_[op]) restored(s);
      if (s != target) offer(s);
    }
    if (target >= 0) offer(target);  // last: it goes first at a tie
    ran_[op] = 1;
    const double base = tables_.time_before(static_cast<int32_t>(problem_.ops.size()));
    if (base + rerun_us_ > time_limit_us_ || static_cast<int64_t>(runs_.size()) > run_limit_) return OnlineEnd::kThrashed;
    return OnlineEnd::kDone;
  }

  /// Bytes that the op can take over from an input which the program frees right after it.
  int64_t inplace_saving(int32_t op) {
    int64_t best = 0;
    for (const InPlace& c : problem_.ops[op].inplace) {
      if (problem_.storages[c.output].bytes <= best || tables_.pinned(c.input) || tables_.uses(c.input).back() != op) continue;
      if (std::binary_search(problem_.ops[op].mutates.begin(), problem_.ops[op].mutates.end(), c.input)) continue;
      const bool goes = options_.deallocation == Deallocation::kEager    ? rebuildable(c.input) || !needed(c.input)
                        : options_.deallocation == Deallocation::kBanish ? evicted_children_[c.input] == 0
                                                                         : false;
      if (goes) best = problem_.storages[c.output].bytes;
    }
    return best;
  }

  // What may be dropped.

  void offer(int32_t s) {
    if (place_[s] >= 0 || !in_memory_[s] || locks_[s] > 0 || fixed_[s] || tables_.pinned(s)) return;
    if (problem_.storages[s].bytes == 0 || !tables_.rerunnable(tables_.producer(s))) return;
    place_[s] = static_cast<int32_t>(pool_.size());
    pool_.push_back(s);
    entered_[s] = ++entries_;
  }
  void withdraw(int32_t s) {
    if (place_[s] < 0) return;
    const int32_t last = pool_.back();
    pool_[place_[s]] = last;
    place_[last] = place_[s];
    pool_.pop_back();
    place_[s] = -1;
  }
  void lock(int32_t s) {
    if (locks_[s]++ == 0) withdraw(s);
  }
  void unlock(int32_t s) {
    if (--locks_[s] == 0) offer(s);
  }

  double score(int32_t s) {
    const auto bytes = static_cast<double>(problem_.storages[s].bytes);
    const double idle = clock_us_ - last_access_us_[s];
    switch (options_.score) {
      case Score::kLru:
        return last_access_us_[s];
      case Score::kSize:
        return 1 / bytes;
      case Score::kMsps:
        return around_.cost_us(s) / bytes;
      default:
        return idle > 0 ? around_.cost_us(s) / (bytes * idle) : kInfinite;
    }
  }

  int32_t choose() {
    if (pool_.empty()) return -1;
    if (options_.score == Score::kRandom) {
      ++result_.evaluations;
      return pool_[random_() % pool_.size()];
    }
    result_.evaluations += static_cast<int64_t>(pool_.size());
    int32_t best = -1;
    double least = kInfinite;
    for (int32_t s : pool_) {
      const double value = score(s);
      // At a tie the one that became free to go last, as in the authors' simulator.
      if (best < 0 || value < least || (value == least && entered_[s] > entered_[best])) {
        best = s;
        least = value;
      }
    }
    return best;
  }

  bool evict_one() {
    for (;;) {
      const int32_t s = choose();
      if (s < 0) return false;
      withdraw(s);
      if (options_.deallocation != Deallocation::kBanish && !rebuildable(s) && !(dead_[s] && !needed(s))) {
        blocked_.push_back(s);
        continue;
      }
      result_.evictions.push_back(s);
      drop(s);
      return true;
    }
  }

  void drop(int32_t s) {
    withdraw(s);
    const bool again = rebuildable(s);
    in_memory_[s] = 0;
    live_ -= problem_.storages[s].bytes;
    if (!again) return;
    around_.evict(s);
    for (int32_t p : tables_.operands(tables_.producer(s))) ++evicted_children_[p];
  }
  void restored(int32_t s) {
    if (!around_.evicted(s)) return;
    around_.restore(s);
    for (int32_t p : tables_.operands(tables_.producer(s))) --evicted_children_[p];
  }

  /// Could the storage be computed again if it were dropped now? O(evicted ancestors), O(1) without ops that run only once.
  bool rebuildable(int32_t storage) {
    if (options_.deallocation == Deallocation::kBanish) return !fixed_[storage] && tables_.rerunnable(tables_.producer(storage));
    if (!tables_.tainted(storage)) return true;
    ++stamp_;
    stack_.assign(1, storage);
    while (!stack_.empty()) {
      const int32_t p = tables_.producer(stack_.back());
      stack_.pop_back();
      if (!tables_.rerunnable(p)) return false;
      for (int32_t s : tables_.operands(p)) {
        if (in_memory_[s] || mark_[s] == stamp_) continue;
        mark_[s] = stamp_;
        stack_.push_back(s);
      }
    }
    return true;
  }

  /// Does a dropped storage that the program still holds hang on this one?
  bool needed(int32_t storage) {
    ++stamp_;
    stack_.assign(1, storage);
    while (!stack_.empty()) {
      const int32_t s = stack_.back();
      stack_.pop_back();
      for (int32_t u : tables_.uses(s)) {
        if (!ran_[u]) continue;
        for (int32_t o : problem_.ops[u].outputs) {
          if (in_memory_[o] || mark_[o] == stamp_) continue;
          if (!dead_[o]) return true;
          mark_[o] = stamp_;
          stack_.push_back(o);
        }
      }
    }
    return false;
  }

  // What the program frees.

  void release_after(int32_t op) {
    for (int32_t s : tables_.operands(op))
      if (tables_.uses(s).back() == op) release(s);
    for (int32_t s : problem_.ops[op].outputs)
      if (tables_.uses(s).empty()) release(s);
  }

  void release(int32_t s) {
    if (tables_.pinned(s)) return;
    dead_[s] = 1;
    if (options_.deallocation == Deallocation::kIgnore && tables_.rerunnable(tables_.producer(s))) return;
    if (options_.deallocation == Deallocation::kBanish) return try_banish(s);
    if (rebuildable(s) || !needed(s)) return drop(s);
    withdraw(s);
    held_.push_back(s);
  }

  /// Freed storages that cannot be made anew wait for dropped ones which hang on them.
  void free_held() {
    std::erase_if(held_, [this](int32_t s) {
      if (locks_[s] > 0) return false;
      if (!in_memory_[s]) return true;
      if (needed(s)) return false;
      drop(s);
      return true;
    });
  }

  void try_banish(int32_t storage) {
    std::vector<int32_t> todo{storage};
    while (!todo.empty()) {
      const int32_t s = todo.back();
      todo.pop_back();
      if (!dead_[s] || fixed_[s] == kBanished || evicted_children_[s] > 0 || locks_[s] > 0) continue;
      for (int32_t u : tables_.uses(s))
        for (int32_t o : problem_.ops[u].outputs)
          if (ran_[u] && in_memory_[o] && fixed_[o] == 0) {
            fixed_[o] = kCannotGo;
            withdraw(o);
          }
      fixed_[s] = kBanished;
      if (in_memory_[s]) {
        withdraw(s);
        in_memory_[s] = 0;
        live_ -= problem_.storages[s].bytes;
        continue;
      }
      restored(s);  // it waits for nothing any more
      const auto parents = tables_.operands(tables_.producer(s));
      todo.insert(todo.end(), parents.begin(), parents.end());
    }
  }

  void finish() {
    simulate::assign_inplace(problem_, runs_);
    auto plan = simulate::make_plan(problem_, std::move(runs_), name_of(options_.score));
    if (!plan) return;  // a legal sequence simulates
    plan->lower_bound_bytes = tables_.lower_bound_bytes();
    result_.plan = std::move(*plan);
  }

  static constexpr char kCannotGo = 1, kBanished = 2;

  const Tables& tables_;
  const Problem& problem_;
  const OnlineOptions options_;
  const int64_t budget_;
  Neighbourhood around_;
  std::mt19937_64 random_;
  OnlineResult result_;
  double time_limit_us_ = 0, clock_us_ = 0, rerun_us_ = 0;
  int64_t run_limit_ = 0, live_ = 0;
  int32_t now_ = 0;
  std::vector<Run> runs_;
  std::vector<Frame> frames_;
  std::vector<char> in_memory_, dead_, fixed_, ran_;
  std::vector<int32_t> locks_, evicted_children_;
  std::vector<double> last_access_us_;
  std::vector<int32_t> pool_, place_;
  std::vector<int64_t> entered_;
  int64_t entries_ = 0;
  std::vector<int32_t> blocked_, held_;
  std::vector<uint32_t> mark_;
  uint32_t stamp_ = 0;
  std::vector<int32_t> stack_;
};

}  // namespace

const char* name_of(Score score) {
  switch (score) {
    case Score::kDtr:
      return "dtr";
    case Score::kDtrEq:
      return "dtr-eq";
    case Score::kDtrLocal:
      return "dtr-local";
    case Score::kLru:
      return "lru";
    case Score::kSize:
      return "size";
    case Score::kMsps:
      return "msps";
    case Score::kRandom:
      break;
  }
  return "random";
}

OnlineResult run_online(const Tables& tables, int64_t budget_bytes, const OnlineOptions& options) {
  return Machine(tables, budget_bytes, options).run();
}

}  // namespace memscale::planner

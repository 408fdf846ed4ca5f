// Facts about a problem that do not depend on a plan: who produces and who uses each storage, what may run again, time and
// floors.
//
// Needs a problem that passes check(). O(reads + writes) to build.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/planner/problem.h"

namespace memscale::planner {

/// Position of a storage without a further use.
inline constexpr int32_t kNever = INT32_MAX;

/// An op's working set: everything that is allocated while it runs even if all else is dropped.
struct Floor {
  int64_t bytes = 0;
  int32_t op = -1;
};

class Tables {
 public:
  explicit Tables(const Problem& problem);

  const Problem& problem() const { return *problem_; }
  int32_t producer(int32_t storage) const { return producer_[storage]; }
  /// Ops of eager's order that read or mutate the storage, ascending.
  std::span<const int32_t> uses(int32_t storage) const {
    return {uses_.data() + uses_begin_[storage], uses_.data() + uses_begin_[storage + 1]};
  }
  /// What the op reads or mutates, resident storages left out.
  std::span<const int32_t> operands(int32_t op) const {
    return {operands_.data() + operands_begin_[op], operands_.data() + operands_begin_[op + 1]};
  }
  /// May the op run a second time? Not if it mutates, is marked, gives a storage to the caller, produces a storage that is
  /// mutated later, or reads one that is mutated later.
  bool rerunnable(int32_t op) const { return rerunnable_[op]; }
  /// Does an ancestor exist that cannot run again?
  bool tainted(int32_t storage) const { return tainted_[storage]; }
  bool pinned(int32_t storage) const { return pinned_[storage]; }  // resident or keep: never dropped
  /// Time of eager's order before op i; i = number of ops: the whole.
  double time_before(int32_t op) const { return time_before_[op]; }
  int64_t base_bytes() const { return base_bytes_; }
  /// Is the storage in memory while op i runs, whatever the plan, in eager's order? Operands and outputs of i are, and what
  /// earlier ops made for the caller, and what cannot be made anew and is read later.
  bool always_beside(int32_t storage, int32_t op) const;
  /// The largest sum of storages that are always beside an op, with its workspace. No plan in eager's order peaks below it.
  Floor order_floor() const { return order_floor_; }
  /// No plan in any order peaks below this.
  int64_t lower_bound_bytes() const { return lower_bound_bytes_; }

 private:
  void find_floors();

  const Problem* problem_;
  std::vector<int32_t> producer_;
  std::vector<int32_t> uses_, uses_begin_, operands_, operands_begin_;
  std::vector<char> rerunnable_, tainted_, pinned_;
  std::vector<double> time_before_;
  int64_t base_bytes_ = 0;
  Floor order_floor_;
  int64_t lower_bound_bytes_ = 0;
};

}  // namespace memscale::planner

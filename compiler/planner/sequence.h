// A run sequence under edit: deletes reruns and keeps memory exact, in O(log n) a change, with undo.
//
// Needs the ops of a legal sequence (every op's first run in eager's order). Deleting a rerun means keeping the instance before
// it until the reads of the deleted one. In-place takeovers are worked out again where lifetimes change.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/planner/memory_tree.h"
#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

enum class GiveBackOrder { kTime, kTimePerByteRun };

class Sequence {
 public:
  Sequence(const Tables& tables, std::span<const int32_t> ops);

  int64_t peak_bytes() const { return std::max(tree_->max(), tables_.base_bytes()); }
  double time_us() const { return time_us_; }

  /// Deletes reruns, the dearest first by `order`, as long as the peak stays within the budget. Objective: least time. Guarantee:
  /// never more time, never over the budget if it was within it; four sweeps, so a last deletion may be left undone.
  /// O(reruns * log n) for sparse cascades.
  void give_back(int64_t budget_bytes, GiveBackOrder order);

  std::vector<int32_t> ops() const;

 private:
  struct Instance {
    int32_t storage;
    int32_t run;
    bool kept;
    std::vector<int32_t> readers;  // runs, ascending
    int32_t previous = -1, next = -1;
  };
  struct Undo {
    enum Kind { kMemory, kReaders, kSlot, kAlive, kLink, kTaken } kind;
    int32_t a = 0, b = 0, c = 0;
    int64_t bytes = 0;
    std::vector<int32_t> readers;
  };

  int32_t end(int32_t instance) const;
  bool remove(int32_t run, int64_t budget_bytes);
  void remove_one(int32_t run, std::vector<int32_t>* orphans);
  void set_readers(int32_t instance, std::vector<int32_t> readers);
  void add_memory(int32_t first, int32_t last, int64_t bytes);
  void refresh_taken(int32_t run);
  int64_t best_taken(int32_t run) const;
  void roll_back();
  bool unread_rerun(int32_t run) const;
  double key(int32_t run, GiveBackOrder order) const;

  const Tables& tables_;
  std::vector<int32_t> ops_;
  std::vector<char> alive_, first_;
  std::vector<int32_t> output_begin_;  // per run, its first instance
  std::vector<int32_t> slot_begin_;    // per run, its first entry of slots_
  std::vector<int32_t> slots_;         // instance read, in the order of Tables::operands
  std::vector<Instance> instances_;
  std::vector<int64_t> taken_;  // per run, bytes that change hands in place
  std::optional<MemoryTree> tree_;
  double time_us_ = 0;
  std::vector<Undo> log_;
};

}  // namespace memscale::planner

// What an online heuristic knows about evicted storages around a resident one: the numerators of DTR's scores.
//
// Neighbours of a storage are the operands of its producer and the outputs of the ops that have read it. Times count once per
// storage, as in DTR's own simulator: an op with two evicted outputs counts twice.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/planner/tables.h"

namespace memscale::planner {

enum class Cost : uint8_t {
  kNone,       // nothing is tracked
  kLocal,      // the producer's time
  kAncestors,  // and the times of evicted ancestors, reached over evicted storages alone
  kExact,      // and of evicted descendants, likewise: e* of the paper
  kClasses,    // and of the equivalence classes of evicted neighbours: e~* of the paper, a union-find that splits by subtraction
};

class Neighbourhood {
 public:
  Neighbourhood(const Tables& tables, Cost kind);

  /// The storage was dropped and can be computed again. O(evicted region) for kAncestors and kExact, else O(degree).
  void evict(int32_t storage);
  /// The storage was computed again.
  void restore(int32_t storage);
  bool evicted(int32_t storage) const { return evicted_[storage]; }

  /// Of a resident storage. O(1) unless the region around it has changed since the last call.
  double cost_us(int32_t storage);
  /// Storages walked over since construction.
  int64_t steps() const { return steps_; }

 private:
  template <class F>
  void for_parents(int32_t storage, F f) const;
  template <class F>
  void for_children(int32_t storage, F f) const;
  template <class Edges, class Inside, class Border>
  void walk(int32_t from, Edges edges, Inside inside, Border border);
  double own_us(int32_t storage) const { return tables_.problem().ops[tables_.producer(storage)].time_us; }
  void invalidate(int32_t storage);
  double classes_us(int32_t storage);
  int32_t root(int32_t node);

  const Tables& tables_;
  Cost kind_;
  std::vector<char> evicted_, up_known_, down_known_;
  std::vector<double> up_us_, down_us_;
  std::vector<uint32_t> mark_;
  uint32_t stamp_ = 0;
  int64_t steps_ = 0;
  std::vector<int32_t> stack_, roots_;

  std::vector<int32_t> node_;    // of each evicted storage, in the union-find
  std::vector<int32_t> parent_;  // of each node; a new one for every eviction
  std::vector<double> class_us_;
};

}  // namespace memscale::planner

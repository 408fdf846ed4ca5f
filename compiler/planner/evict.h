// One offline eviction pass: walks eager's order under a budget, drops what is cheapest to rebuild for the bytes and the time it
// would lie idle, and reruns chains of ops just before their results are read.
//
// Objective: least added time. Guarantee: a run sequence that computes every op's original result, with a peak of at most the
// budget once frees are derived; or no answer. Complexity: about n log n for bounded chains; stops at Limits. All working state
// is kept between passes, so a portfolio pays for it once. No recursion.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "compiler/planner/tables.h"

namespace memscale::planner {

/// How a pass scores what it may drop: rebuild time / (bytes * distance to the next use ^ distance_power).
struct Variant {
  std::string name;
  double distance_power = 0.5;
  double discount = 1;       // weight of dropped ancestors which will be rebuilt anyway
  double keep_dead = 0;      // weight of dead storages whose dropped children are still to be read; 0: freed at once
  enum Distance : uint8_t {
    kTime,   // microseconds of eager's order
    kOver,   // only where save-all would exceed the budget, by how much
    kPrice,  // what memory is worth there (relaxation.h)
  } distance = kTime;
};

struct Limits {
  double time_us = 0;  // give up once the runs take longer; 0: none
  int64_t runs = 0;    // give up after so many runs; 0: none
  int64_t work = 0;    // give up after so many chain steps and runs; 0: none
};

enum class PassEnd { kDone, kNoRoom, kTooLong };

class Evictor {
 public:
  explicit Evictor(const Tables& tables);

  /// `prices`: per op of eager's order, the weight of lying idle beside it, used unless the variant counts time; may be empty then.
  /// `multipliers`: per storage, scales its score; may be empty. The answer is in runs().
  PassEnd run(int64_t budget_bytes, const Variant& variant, std::span<const double> prices, std::span<const double> multipliers,
              const Limits& limits);

  /// Drops what `drop_after[i]` lists once op i has run for the first time, and nothing else; memory is not limited.
  /// `together[s]` >= 0: storages of one number are rebuilt in one go at the first need of any of them. Numbers are below the
  /// count of ops.
  PassEnd run_fixed(const std::vector<std::vector<int32_t>>& drop_after, const std::vector<int32_t>& together,
                    const Limits& limits);

  const std::vector<int32_t>& runs() const { return runs_; }  // op of each run
  int32_t stuck_op() const { return stuck_op_; }              // with kNoRoom: the op of eager's order being worked for
  int64_t visits() const { return visits_; }                  // work done since construction, in chain steps and runs

 private:
  struct Frame {
    std::vector<int32_t> ops;
    size_t next = 0;
  };
  struct Entry {
    double score;
    int32_t storage;
    uint32_t stamp;
    bool operator<(const Entry& other) const {  // std::priority_queue puts the least score first
      return score != other.score ? score > other.score : storage > other.storage;
    }
  };

  void reset(const Variant& variant, std::span<const double> prices, std::span<const double> multipliers, const Limits& limits);
  PassEnd walk(const std::vector<std::vector<int32_t>>* drop_after);
  PassEnd rebuild_operands(int32_t op);
  bool any_missing(int32_t op) const;
  void push_frame(std::span<const int32_t> targets);
  PassEnd execute(int32_t op, bool original);
  int64_t inplace_saving(int32_t op, bool original) const;
  bool make_room(int64_t bytes);
  bool wanted(int32_t storage) const { return next_use(storage) != kNever || chain_refs_[storage] > 0; }
  int32_t next_use(int32_t storage) const {
    const auto uses = tables_.uses(storage);
    return use_at_[storage] < uses.size() ? uses[use_at_[storage]] : kNever;
  }
  int32_t child_use(int32_t storage) const;
  double chain_cost(int32_t storage, bool full);
  bool score(int32_t storage, double* out);
  void touch(int32_t storage);
  void free_if_dead(int32_t storage);
  void drop(int32_t storage);
  void evicted(int32_t storage);
  void support(int32_t storage);
  void unsupport(int32_t storage);
  void move_supporters(int32_t storage);

  const Tables& tables_;
  const Problem& problem_;
  int64_t budget_ = 0;
  Variant variant_;
  std::span<const double> multipliers_;
  Limits limits_;
  std::vector<double> distance_;  // prefix sums over ops
  double soon_ = 0;               // smallest distance
  int32_t now_ = 0;
  bool limited_ = false;
  int64_t live_ = 0;
  double spent_us_ = 0;
  int32_t stuck_op_ = -1;
  int64_t visits_ = 0;
  int64_t visits_end_ = INT64_MAX;

  std::vector<char> in_memory_;
  std::vector<uint32_t> use_at_;
  std::vector<int32_t> chain_refs_;
  std::vector<uint32_t> stamp_;
  std::priority_queue<Entry> heap_;
  std::vector<uint32_t> op_mark_;
  uint32_t mark_ = 0;
  std::vector<uint32_t> locked_;
  uint32_t lock_ = 0;
  std::vector<int32_t> together_;              // group of each storage, or empty
  std::vector<std::vector<int32_t>> members_;  // storages of each group
  std::vector<Frame> frames_;
  std::vector<int32_t> stack_;
  std::vector<int32_t> runs_;

  // Tainted storages that were dropped and are still wanted hold what they can be rebuilt from.
  std::vector<int32_t> holds_;
  std::vector<std::vector<int32_t>> leaves_;
  std::vector<std::vector<std::pair<int32_t, uint32_t>>> supporters_;
  std::vector<uint32_t> support_stamp_;
};

}  // namespace memscale::planner

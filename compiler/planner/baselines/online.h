// Dynamic Tensor Rematerialization (Kirisame et al. 2021, arXiv:2006.09616) as a simulation on a Problem: an online eviction that
// does not know which ops come.
//
// Ops arrive in eager's order. Before each allocation the resident storage of least score is dropped until the budget holds; a
// read of a dropped storage runs its producer again, and that one's, with locks on what the work in hand needs. The program frees
// a storage after its last read in eager's order, and the heuristic learns of it then, not before.
//
// Objective: none stated by the paper, the scores are heuristics. Guarantee: kDone gives a plan that passes verify() and peaks at
// most at the budget, because its frees fall no later than the online ones. Complexity: each eviction scans all that may be
// dropped, as the paper's prototype does: O(evictions * resident storages). Deterministic, also kRandom. No recursion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

/// What is least goes first. c: time of the producer, m: bytes, s: time since the last access.
enum class Score : uint8_t {
  kDtr,       // (c + times of e*) / (m s), e* the evicted neighbourhood
  kDtrEq,     // the same over e~*, its approximation by equivalence classes
  kDtrLocal,  // c / (m s)
  kLru,       // 1 / s
  kSize,      // 1 / m
  kMsps,      // (c + times of evicted ancestors) / m: memory saving per second of Peng et al. 2020 (Capuchin)
  kRandom,    // any, evenly
};

/// What a free by the program does. The paper's figures are those of kEager.
enum class Deallocation : uint8_t {
  kIgnore,  // nothing: the storage waits for its eviction like any other
  kEager,   // drops it at once; it can be computed again for the sake of others
  kBanish,  // drops it for good once none of its children is evicted, and its children can no longer be dropped
};

struct OnlineOptions {
  Score score = Score::kDtrEq;
  Deallocation deallocation = Deallocation::kEager;
  double time_factor = 2;               // gives up beyond this multiple of the base time; the paper plots up to 2
  uint64_t seed = 1;                    // of kRandom
  int64_t evaluations = 4'000'000'000;  // gives up after so many looks at scores and steps to neighbours; some seconds
};

enum class OnlineEnd : uint8_t { kDone, kOutOfMemory, kThrashed, kTooMuchWork };

struct OnlineResult {
  OnlineEnd end = OnlineEnd::kDone;
  Plan plan;                      // empty unless kDone
  int32_t stuck_op = -1;          // unless kDone: the op of eager's order being worked for
  double time_us = 0;             // spent when it ended
  int64_t online_peak_bytes = 0;  // what DTR itself holds at most; the plan frees earlier and may peak below
  int64_t evaluations = 0;
  std::vector<int32_t> evictions;  // storages dropped to make room, in order
};

/// "dtr", "dtr-eq", "dtr-local", "lru", "size", "msps", "random".
const char* name_of(Score score);

OnlineResult run_online(const Tables& tables, int64_t budget_bytes, const OnlineOptions& options);

}  // namespace memscale::planner

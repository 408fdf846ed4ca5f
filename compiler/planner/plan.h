// What the planner answers: a sequence of runs. Frees follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/planner/problem.h"

namespace memscale::planner {

/// One execution of an op. The first run of each op is the original, later ones are recomputation. A read of a storage at run i
/// sees the last run before i that produced it; an instance is freed after its last read (at once if nothing reads it).
struct Run {
  int32_t op = -1;
  int32_t inplace = -1;  // index into Op::inplace, or -1: fresh memory for every output
  bool operator==(const Run&) const = default;
};

struct Plan {
  std::vector<Run> runs;
  int64_t peak_bytes = 0;         // simulated; static and resident bytes included
  int32_t peak_run = -1;          // index into runs
  double time_us = 0;             // sum over runs
  double base_time_us = 0;        // sum over ops, once each
  std::string policy;             // which member of the portfolio won
  int64_t lower_bound_bytes = 0;  // no plan can peak below this
};

/// Proves that `plan` computes every output and gradient of `problem` once or more with the values that eager's order gives:
/// every read finds a live instance, forward runs precede the border, ops that mutate run once and in order, RNG ops keep the
/// order of their first runs, in-place takes only dead inputs. Recounts peak and time from nothing. One line per fault; empty:
/// proven.
std::vector<std::string> verify(const Problem& problem, const Plan& plan);

}  // namespace memscale::planner

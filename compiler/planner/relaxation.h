// The Lagrangian relaxation of a step's memory: what a byte is worth at each op, and a time that no plan in eager's order beats.
//
// Memory at each op of eager's order gets a price. Each storage then decides alone, for each span between two of its uses, whether holding
// it costs more than running its producer once more; what the producer reads is taken to be there. Any prices give a lower bound; the
// subgradient method raises it (Held and Karp 1971; Polyak's step). Objective: the greatest bound. O(iterations * (ops + reads)).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/planner/tables.h"

namespace memscale::planner {

struct Relaxation {
  double bound_us = 0;         // no plan within the budget whose first runs are in eager's order takes less time
  std::vector<double> prices;  // per op, microseconds per byte in use while it runs
};

/// `time_us`: of a plan within the budget if one is known, else a guess of it; it only scales the steps.
Relaxation relax(const Tables& tables, int64_t budget_bytes, double time_us, int iterations);

}  // namespace memscale::planner

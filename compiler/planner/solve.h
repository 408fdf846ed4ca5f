// The planner: a portfolio of eviction passes and structured plans, each improved by give-back, the fastest within the budget
// wins.
//
// Objective: least time at a peak of at most the budget. Guarantee: the plan passes verify(); it keeps the budget or `feasible`
// is false; it is never slower than a baseline in the result that keeps the budget; if save-all fits, save-all is the answer.
// Deterministic: work is counted, not timed. Complexity: a bounded number of passes of about n log n each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

struct Options {
  int64_t budget_bytes = 0;     // of the peak, static and resident bytes included
  std::string policy = "auto";  // "auto", or one of policies() alone
  int32_t search_rounds = -1;   // passes with perturbed scores after the portfolio; -1: what costs about as much as the portfolio
  bool all_baselines = false;   // the result lists every baseline, also the dear ones; with "auto" they take part
  int64_t work_limit = 0;       // chain steps and runs after which no further pass starts; 0: 6,000 per op + 1,000,000
};

struct Baseline {
  std::string policy;
  int64_t peak_bytes = 0;
  double time_us = 0;
  bool fits = false;
  std::string note;  // if not: why; an online baseline that gave up has no plan, its peak and time are 0
};

struct SolveResult {
  Plan plan;  // of the lowest peak found if not feasible
  bool feasible = false;
  std::vector<Baseline> baselines;
  int64_t budget_bytes = 0;
  double lower_bound_us = 0;  // no plan within the budget whose first runs are in eager's order takes less time
  int64_t work = 0;  // chain steps and runs spent
  // If not feasible:
  std::string policy_note;              // why the one baseline asked for by name has no plan within the budget
  int64_t lowest_peak_bytes = 0;        // of the plan with the lowest peak found
  Floor floor;                          // the op whose working set is the largest; no plan in eager's order goes below it
  std::vector<int32_t> floor_storages;  // what that op needs at once, largest first, resident storages left out
};

/// Names that Options::policy takes, in the order in which the portfolio tries them.
std::vector<std::string> policies();

/// `problem` must pass check(). An unknown policy gives an infeasible result with an empty plan: see policies().
SolveResult solve(const Problem& problem, const Options& options);

/// The plan with the lowest peak that bisection over budgets finds.
Plan find_lowest(const Problem& problem);

/// One paragraph for people: why the budget cannot be met, and what stands in the way.
std::string explain_infeasible(const Problem& problem, const SolveResult& result);

}  // namespace memscale::planner

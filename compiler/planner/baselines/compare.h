// All baselines by name, for tables beside our own plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/planner/baselines/online.h"
#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

enum class BaselineEnd : uint8_t {
  kFits,
  kOverBudget,   // a plan that does not look at the budget, or that found no setting within it; the plan is there
  kOutOfMemory,  // online: nothing left to drop
  kThrashed,     // online: slower than the limit
  kTooMuchWork,  // online: more looks at scores than the limit
};

struct BaselineResult {
  std::string policy;
  BaselineEnd end = BaselineEnd::kFits;
  Plan plan;              // without runs where an online one gave up
  int32_t stuck_op = -1;  // there
  double planning_s = 0;  // the one value that differs from call to call

  /// "fits", or why not: "out of memory at op 12 (aten::mm)".
  std::string describe(const Problem& problem) const;
};

struct CompareOptions {
  double time_factor = 2;  // of the online ones
  int64_t evaluations = 4'000'000'000;
  Deallocation deallocation = Deallocation::kEager;
  uint64_t seed = 1;
};

/// In the order of compare(): plans by rule first, then the knapsacks, then the online ones.
const std::vector<std::string>& baseline_policies();

/// Does the policy look at the budget? save-all, full-recompute, sqrt-n and chen-greedy do not.
bool is_budgeted(const std::string& policy);

/// `policy` is one of baseline_policies().
BaselineResult run_baseline(const Tables& tables, const std::string& policy, int64_t budget_bytes,
                            const CompareOptions& options = {});

/// Every baseline on one problem, each verified by its own tests and not here. `problem` must pass check().
std::vector<BaselineResult> compare(const Problem& problem, int64_t budget_bytes, const CompareOptions& options = {});

}  // namespace memscale::planner

//===- PlanStep.h - Ask the planner, write its answer down ------*- C++ -*-===//
//
// The policy behind memscale-plan-recompute. Needs a captured step; annotates,
// changes nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_POLICY_PLANSTEP_H
#define MEMSCALE_PASSES_POLICY_PLANSTEP_H

#include "compiler/planner/plan.h"
#include "compiler/planner/problem.h"
#include "passes/policy/CostModel.h"

#include <string>
#include <utility>
#include <vector>

namespace memscale::passes {

struct PlanningOptions {
  int64_t budget_bytes = 0;    // peak not to be exceeded; 0: none
  double budget_fraction = 0;  // of the save-all peak; 0: none. With both, the smaller budget holds
  bool minimize = false;       // go to the smallest peak that the planner finds, whatever the budget
  int64_t static_bytes = 0;    // held all through the step beside the arguments: optimizer state, reserve
  std::string policy = "auto"; // "auto", "save-all" (nothing but earliest frees) or one of planner::policies()
  int32_t search_rounds = 0;   // passes of the planner's search after its portfolio
  CostModel costs;
};

/// What happens to the results of one call.
struct Decision {
  std::string kind;   // "keep", "recompute", "inplace"
  std::string tensor; // "h.3.mlp / aten::gelu #512"
  std::string op;     // "aten::gelu"
  int32_t call = -1;  // number of the call in the captured step
  int64_t bytes = 0;
  int32_t reruns = 0;
  double added_time_us = 0;
  std::string reason;
  std::string file; // source location; empty: unknown
  unsigned line = 0;
  std::string module_path;
};

struct LiveStorage {
  std::string name;
  std::string role; // "activation", "gradient", "output"
  int64_t bytes = 0;
  std::string file;
  unsigned line = 0;
  std::string module_path;
};

struct BaselinePlan {
  std::string policy;
  int64_t peak_bytes = 0;
  double time_us = 0;
};

struct PlanningResult {
  bool feasible = false;    // a plan within the budget was found
  std::string infeasible;   // if not: why, what stands in the way
  bool applied = false;     // false: the plan is the captured order
  int64_t budget_bytes = 0; // in force; 0: none
  int64_t static_bytes = 0; // arguments and PlanningOptions::static_bytes
  int64_t eager_peak_bytes = 0;
  int64_t save_all_peak_bytes = 0; // eager's order, memory freed at its last use, nothing in place
  int64_t planned_peak_bytes = 0;
  int64_t lower_bound_bytes = 0;
  double base_time_us = 0, time_us = 0;
  std::string policy; // that won
  std::vector<BaselinePlan> baselines;
  std::vector<Decision> decisions;       // largest first, then by call
  std::vector<LiveStorage> live_at_peak; // largest first
  std::string peak_op;                   // tensor name of the call where the plan peaks
  std::string peak_file;
  unsigned peak_line = 0;
  std::string peak_module_path;
  std::vector<std::pair<std::string, int64_t>> unknown_workspaces; // schema, calls
  std::vector<std::string> notes;
  planner::Problem problem;
  planner::Plan plan;
};

/// Sets schedule and decisions on `step`, which becomes `planned`. Fails with an error at the step for an unknown policy, and if
/// no plan is within the budget (`result` says why).
mlir::LogicalResult planStep(ir::StepOp step, const PlanningOptions &options, PlanningResult &result);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_POLICY_PLANSTEP_H

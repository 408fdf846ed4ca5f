//===- Decisions.h - A plan told call by call -------------------*- C++ -*-===//
//
// Turns the runs of a plan into decisions with reasons. Changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_POLICY_DECISIONS_H
#define MEMSCALE_PASSES_POLICY_DECISIONS_H

#include "passes/policy/BuildProblem.h"
#include "passes/policy/PlanStep.h"

namespace memscale::passes {

/// One decision for each op that runs again, takes memory over, or whose results are held from forward to backward. In order of
/// ops.
std::vector<Decision> explainPlan(const BuiltProblem &built, const planner::Plan &plan);

/// "12.0 MiB"
std::string printBytes(int64_t bytes);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_POLICY_DECISIONS_H

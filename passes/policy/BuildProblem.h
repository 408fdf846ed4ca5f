//===- BuildProblem.h - A step as a planner::Problem ------------*- C++ -*-===//
//
// Views are resolved away; what must not run twice is marked. Needs a captured
// step, changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_POLICY_BUILDPROBLEM_H
#define MEMSCALE_PASSES_POLICY_BUILDPROBLEM_H

#include "compiler/planner/problem.h"
#include "passes/analysis/Storages.h"
#include "passes/policy/CostModel.h"

#include <map>

namespace memscale::passes {

struct BuiltProblem {
  planner::Problem problem;                                     // storage i is storage i of Storages
  std::vector<ir::KernelOpInterface> calls;                     // of each op
  std::vector<llvm::SmallVector<unsigned, 2>> inplace_operands; // of each op, parallel to Op::inplace
  std::map<std::string, int64_t> unknown_workspaces;            // schema name → calls without an entry
  std::vector<std::string> notes;                               // what the caller should know: shared gradients
};

BuiltProblem buildProblem(ir::StepOp step, const Storages &storages, const CostModel &costs, int64_t static_bytes);

/// "h.3.mlp / aten::gelu #512": module path, schema, number of the call.
std::string describeCall(ir::KernelOpInterface call);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_POLICY_BUILDPROBLEM_H

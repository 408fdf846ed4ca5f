//===- Costs.h - Costs of kernels from a target profile ---------*- C++ -*-===//
//
// Describes kernels to compiler/cost. Changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_POLICY_COSTS_H
#define MEMSCALE_PASSES_POLICY_COSTS_H

#include "passes/policy/CostModel.h"

namespace memscale::passes {

/// The cost model of a profile (a name or a YAML file); empty: the built-in profile of the step's target. Errors are emitted at
/// the step.
mlir::FailureOr<CostModel> loadCostModel(ir::StepOp step, const std::string &profile);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_POLICY_COSTS_H

//===- Pipelines.h - The way of a step through the passes -------*- C++ -*-===//
//
// The one entry of the driver, and the pipelines for memscale-opt.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_PIPELINES_H
#define MEMSCALE_PASSES_PIPELINES_H

#include "passes/policy/PlanStep.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace memscale::passes {

/// Captured, ready for the policy: a reference for the verifier, dead calls gone, blocks numbered.
void buildPreparePipeline(mlir::OpPassManager &manager);

/// Planned to scheduled and proven.
void buildRewritePipeline(mlir::OpPassManager &manager);

/// Registers both as memscale-prepare and memscale-rewrite.
void registerPipelines();

/// Called when the step has reached a phase: the module can be printed or exported there.
using PhaseHook = std::function<void(ir::Phase, mlir::ModuleOp)>;

/// From a captured module with one step to a scheduled and verified one. Errors are diagnostics of the module's context; `result`
/// is filled as far as the planning came (`feasible` tells a budget that cannot be met from other failures).
mlir::LogicalResult runPlanning(mlir::ModuleOp module, const PlanningOptions &options, PlanningResult &result,
                                const PhaseHook &hook = nullptr);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_PIPELINES_H

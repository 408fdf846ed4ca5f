//===- PlanRecompute.cpp - memscale-plan-recompute -------------------------===//
//
// Needs the phase captured; annotates. Leaves the phase planned.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/policy/Costs.h"
#include "passes/policy/PlanStep.h"
#include "passes/verify/Verify.h"

namespace memscale::passes {
#define GEN_PASS_DEF_PLANRECOMPUTE
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct PlanRecompute : memscale::passes::impl::PlanRecomputeBase<PlanRecompute> {
  using PlanRecomputeBase::PlanRecomputeBase;

  void runOnOperation() override {
    StepOp step = getOperation();
    if (step.getReference())
      return;
    PlanningOptions options;
    options.budget_bytes = budgetBytes;
    options.budget_fraction = budgetFraction;
    options.minimize = minimize;
    options.static_bytes = staticBytes;
    options.policy = policy;
    FailureOr<CostModel> costs = loadCostModel(step, profile);
    if (failed(costs))
      return signalPassFailure();
    options.costs = *costs;
    PlanningResult result;
    if (failed(planStep(step, options, result)))
      return signalPassFailure();
    emitRemark(step.getLoc()) << "peak " << result.planned_peak_bytes << " bytes of " << result.save_all_peak_bytes
                              << " by policy " << result.policy;
  }
};
} // namespace

//===- Pipelines.cpp - The way of a step through the passes ----------------===//
//
// Reads as prose: what runs, and why it stands where it stands.
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"

#include "passes/Passes.h"
#include "passes/verify/Verify.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

static VerifyPhaseOptions inPhase(Phase phase) { return {stringifyPhase(phase).str()}; }

void memscale::passes::buildPreparePipeline(OpPassManager &manager) {
  // What capture recorded is taken at its word from here on: check it first.
  manager.addNestedPass<StepOp>(createVerifyPhase(inPhase(Phase::Captured)));

  // The proof at the end compares with the step as captured, so the copy is taken before anything is changed, dead calls
  // included.
  manager.addPass(createKeepReference());

  // A dead call would be planned for, and its operands held for it.
  manager.addNestedPass<StepOp>(createEliminateDeadCalls());

  // Hints for the policy, and where backward is cut into segments.
  manager.addNestedPass<StepOp>(createAssignBlocks());
}

// The policy stands between the two: memscale-plan-recompute, or planStep with the driver's options. It annotates alone.

void memscale::passes::buildRewritePipeline(OpPassManager &manager) {
  manager.addNestedPass<StepOp>(createVerifyPhase(inPhase(Phase::Planned)));

  // From here on mechanisms obey. CSE and its like must not run behind this point: a recomputation is a common subexpression, and
  // merging it with its call undoes the plan.
  manager.addNestedPass<StepOp>(createApplyPlan());
  manager.addNestedPass<StepOp>(createVerifyPhase(inPhase(Phase::Rewritten)));

  // Needs the order of runs: memory can be taken over by the run that reads it last.
  manager.addNestedPass<StepOp>(createReinplace());

  // Frees last: every earlier pass moves last uses.
  manager.addNestedPass<StepOp>(createInsertFrees());
  manager.addNestedPass<StepOp>(createVerifyPhase(inPhase(Phase::Scheduled)));

  // A step that is not proven is not exported.
  manager.addPass(createVerifyValues());
  manager.addNestedPass<StepOp>(createVerifyMemory());
  manager.addPass(createDropReference());
}

void memscale::passes::registerPipelines() {
  PassPipelineRegistration<>("memscale-prepare", "Everything before the policy: reference, dead calls, blocks",
                             buildPreparePipeline);
  PassPipelineRegistration<>("memscale-rewrite", "Everything behind the policy: apply, in-place, frees, verification",
                             buildRewritePipeline);
}

static LogicalResult run(ModuleOp module, void (*build)(OpPassManager &)) {
  PassManager manager(module.getContext());
  build(manager);
  return manager.run(module);
}

LogicalResult memscale::passes::runPlanning(ModuleOp module, const PlanningOptions &options, PlanningResult &result,
                                            const PhaseHook &hook) {
  result = {};
  auto report = [&](Phase phase) {
    if (hook)
      hook(phase, module);
  };
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  if (steps.size() != 1)
    return module.emitError() << "expected one memscale.step in the module, found " << steps.size();
  report(Phase::Captured);
  if (failed(run(module, buildPreparePipeline)) || failed(planStep(steps.front(), options, result)))
    return failure();
  report(Phase::Planned);
  if (failed(run(module, buildRewritePipeline)))
    return failure();
  report(Phase::Scheduled);
  return success();
}

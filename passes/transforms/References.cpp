//===- References.cpp - Copies of the captured step ------------------------===//
//
// KeepReference clones captured steps, DropReference erases the clones.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/Verify.h"

namespace memscale::passes {
#define GEN_PASS_DEF_KEEPREFERENCE
#define GEN_PASS_DEF_DROPREFERENCE
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct KeepReference : memscale::passes::impl::KeepReferenceBase<KeepReference> {
  void runOnOperation() override {
    for (StepOp step : llvm::make_early_inc_range(getOperation().getOps<StepOp>())) {
      if (step.getReference())
        continue;
      if (step.getPhase() != Phase::Captured) {
        step.emitOpError("is ") << stringifyPhase(step.getPhase()) << ": a reference can be taken of a captured step only";
        return signalPassFailure();
      }
      StepOp copy = step.clone();
      copy.setSymName(referenceName(step));
      copy.setReference(true);
      step->getBlock()->getOperations().insertAfter(step->getIterator(), copy);
    }
  }
};

struct DropReference : memscale::passes::impl::DropReferenceBase<DropReference> {
  void runOnOperation() override {
    for (StepOp step : llvm::make_early_inc_range(getOperation().getOps<StepOp>()))
      if (step.getReference())
        step.erase();
  }
};
} // namespace

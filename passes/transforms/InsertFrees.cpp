//===- InsertFrees.cpp - Explicit frees ------------------------------------===//
//
// Frees every name behind its last use. Needs the phase rewritten; destroys
// nothing. Leaves the phase scheduled.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/analysis/Liveness.h"

#include "llvm/ADT/MapVector.h"

namespace memscale::passes {
#define GEN_PASS_DEF_INSERTFREES
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct InsertFrees : memscale::passes::impl::InsertFreesBase<InsertFrees> {
  void runOnOperation() override {
    StepOp step = getOperation();
    if (step.getReference())
      return;
    if (step.getPhase() != Phase::Rewritten) {
      step.emitOpError("expected the phase `rewritten`, found `")
          << stringifyPhase(step.getPhase()) << "`; run memscale-apply-plan first";
      return signalPassFailure();
    }
    // All last uses before the first insertion: an insertion renumbers the block.
    llvm::MapVector<Operation *, SmallVector<Value, 4>> dying;
    for (Operation &op : step.getBlock())
      for (Value result : op.getResults()) {
        Operation *end = lastUse(result);
        if (!isa<ReturnOp>(end))
          dying[end].push_back(result);
      }
    OpBuilder builder(&getContext());
    for (auto &[op, names] : dying) {
      builder.setInsertionPointAfter(op);
      FreeOp::create(builder, op->getLoc(), names);
      numFrees += names.size();
    }
    step.setPhase(Phase::Scheduled);
  }
};
} // namespace

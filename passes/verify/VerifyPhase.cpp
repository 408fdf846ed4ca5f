//===- VerifyPhase.cpp - What each phase promises --------------------------===//
//
// Stands at the borders of the pipeline, beside the verifier of memscale.step.
// Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/Verify.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace memscale::passes {
#define GEN_PASS_DEF_VERIFYPHASE
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;

static LogicalResult verifyCaptured(StepOp step) {
  int64_t last = -1;
  for (auto kernel : step.getBlock().getOps<KernelOpInterface>()) {
    if (static_cast<int64_t>(kernel.getId()) <= last)
      return kernel->emitOpError("has the number ")
             << kernel.getId() << " after " << last << "; captured calls are numbered in order";
    last = kernel.getId();
    if (kernel.getRngSlot() || kernel->hasAttr("takes_over"))
      return kernel->emitOpError("carries a slot or takes_over in the phase `captured`");
  }
  return success();
}

static LogicalResult verifyPlanned(StepOp step) {
  llvm::DenseSet<uint32_t> scheduled;
  ArrayRef<int32_t> schedule = *step.getSchedule();
  scheduled.insert_range(schedule);
  for (auto kernel : step.getBlock().getOps<KernelOpInterface>()) {
    bool runs = scheduled.erase(kernel.getId());
    if (runs == isView(kernel))
      return kernel->emitOpError(runs ? "is a view and stands in the schedule" : "is missing from the schedule");
  }
  if (!scheduled.empty())
    return step.emitOpError("has call ") << *scheduled.begin() << " in its schedule, which it does not hold";
  return success();
}

static LogicalResult verifyRewritten(StepOp step) {
  llvm::DenseMap<uint32_t, std::optional<uint32_t>> slotOf;
  for (auto kernel : step.getBlock().getOps<KernelOpInterface>()) {
    if (isa<CallOp>(kernel.getOperation())) {
      if (!slotOf.try_emplace(kernel.getId(), kernel.getRngSlot()).second)
        return kernel->emitOpError("is call ") << kernel.getId() << " a second time; later runs are memscale.recompute";
      continue;
    }
    auto first = slotOf.find(kernel.getId());
    if (first == slotOf.end())
      return kernel->emitOpError("recomputes call ") << kernel.getId() << ", which has not run before";
    if (first->second != kernel.getRngSlot())
      return kernel->emitOpError("replays another slot than call ") << kernel.getId() << " saved";
  }
  return success();
}

static LogicalResult verifyScheduled(StepOp step) {
  for (auto kernel : step.getBlock().getOps<KernelOpInterface>())
    if (auto operand = kernel->getAttrOfType<IntegerAttr>("takes_over"))
      if (!llvm::is_contained(kernel.getMutates(), operand.getInt()))
        return kernel->emitOpError("was to take operand #") << operand.getInt() << " over and does not; run memscale-reinplace";
  return verifyRewritten(step);
}

namespace {
struct VerifyPhase : memscale::passes::impl::VerifyPhaseBase<VerifyPhase> {
  using VerifyPhaseBase::VerifyPhaseBase;

  void runOnOperation() override {
    StepOp step = getOperation();
    markAllAnalysesPreserved();
    if (step.getReference())
      return;
    std::optional<Phase> expected = symbolizePhase(phase.getValue());
    if (!expected) {
      step.emitOpError("cannot be in the phase `") << phase << "`: expected captured, planned, rewritten or scheduled";
      return signalPassFailure();
    }
    if (step.getPhase() != *expected) {
      step.emitOpError("expected the phase `") << phase << "`, found `" << stringifyPhase(step.getPhase()) << "`";
      return signalPassFailure();
    }
    LogicalResult result = *expected == Phase::Captured    ? verifyCaptured(step)
                           : *expected == Phase::Planned   ? verifyPlanned(step)
                           : *expected == Phase::Rewritten ? verifyRewritten(step)
                                                           : verifyScheduled(step);
    if (failed(result))
      signalPassFailure();
  }
};
} // namespace

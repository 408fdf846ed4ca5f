//===- TestMutations.cpp - Do the verifiers catch every fault? -------------===//
//
// memscale-test-mutations: damages copies of a scheduled step in every place
// where each damage applies, and fails if a verifier lets one pass. Needs the
// step's reference; changes nothing.
//
//===----------------------------------------------------------------------===//

#include "Damages.h"

#include "passes/verify/Verify.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct TestMutations : PassWrapper<TestMutations, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestMutations)

  StringRef getArgument() const final { return "memscale-test-mutations"; }
  StringRef getDescription() const final { return "Damage a scheduled step in every way; each damage must be caught"; }

  void runOnOperation() override {
    for (StepOp step : llvm::to_vector(getOperation().getOps<StepOp>())) {
      if (step.getReference())
        continue;
      auto reference = dyn_cast_or_null<StepOp>(getOperation().lookupSymbol(referenceName(step)));
      if (!reference || failed(verifyValues(reference, step)) || failed(verifyMemory(step))) {
        step.emitOpError("must be proven against its reference before it is damaged");
        return signalPassFailure();
      }
      for (const memscale::tools::Damage &damage : memscale::tools::damages())
        test(damage, reference, step);
    }
    markAllAnalysesPreserved();
  }

  void test(const memscale::tools::Damage &damage, StepOp reference, StepOp step) {
    unsigned caught = 0, site = 0;
    for (;; ++site) {
      StepOp copy = step.clone();
      getOperation().getBody()->push_back(copy);
      copy.setSymName("damaged");
      bool applied = damage.apply(copy, site);
      if (applied && isCaught(reference, copy))
        ++caught;
      else if (applied)
        copy.emitError() << damage.name << " at site " << site << " is not caught";
      copy.erase();
      if (!applied)
        break;
    }
    emitRemark(step.getLoc()) << damage.name << ": " << caught << " of " << site << " caught";
    if (caught != site)
      signalPassFailure();
  }

  bool isCaught(StepOp reference, StepOp copy) {
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    return failed(mlir::verify(copy)) || failed(verifyValues(reference, copy)) || failed(verifyMemory(copy));
  }
};
} // namespace

void registerTestMutations() { PassRegistration<TestMutations>(); }

//===- EliminateDeadCalls.cpp ----------------------------------------------===//
//
// Erases calls without effects whose results are unused. Needs the phase
// captured. Destroys dead calls.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

namespace memscale::passes {
#define GEN_PASS_DEF_ELIMINATEDEADCALLS
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;

namespace {
struct EliminateDeadCalls : memscale::passes::impl::EliminateDeadCallsBase<EliminateDeadCalls> {
  void runOnOperation() override {
    if (getOperation().getReference())
      return;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getOperation().getBlock()))) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel || kernel.hasEffects() || !op.use_empty())
        continue;
      op.erase();
      ++numErased;
    }
  }
};
} // namespace

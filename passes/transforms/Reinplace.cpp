//===- Reinplace.cpp - Calls that write over an operand --------------------===//
//
// Obeys takes_over. Needs the phase rewritten; destroys the functional form of
// those calls.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/analysis/InPlaceForms.h"

namespace memscale::passes {
#define GEN_PASS_DEF_REINPLACE
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct Reinplace : memscale::passes::impl::ReinplaceBase<Reinplace> {
  void runOnOperation() override {
    if (getOperation().getReference())
      return;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getBlock().getOps<KernelOpInterface>()))
      if (auto operand = kernel->getAttrOfType<IntegerAttr>("takes_over"))
        if (failed(rewrite(kernel, operand.getInt())))
          return signalPassFailure();
  }

  LogicalResult rewrite(KernelOpInterface kernel, unsigned operand) {
    std::optional<InPlaceForm> form = inPlaceForm(kernel, operand);
    if (!form)
      return kernel->emitOpError("should take over operand #")
             << operand << ", but " << kernel.getSchema() << " has no in-place form for that";
    Builder builder(&getContext());
    unsigned target = operand;
    if (form->out) {
      target = kernel->getNumOperands();
      SmallVector<Attribute> args(kernel.getArgs().getValue());
      args.push_back(RefAttr::get(&getContext(), target));
      kernel->setAttr("args", builder.getArrayAttr(args));
      kernel->insertOperands(target, kernel->getOperand(operand));
    }
    kernel->setAttr("schema", builder.getStringAttr(form->schema));
    kernel->setAttr("overload", builder.getStringAttr(form->overload));
    kernel->setAttr("mutates", builder.getDenseI32ArrayAttr(target));
    kernel->setAttr("aliases", builder.getArrayAttr(AliasAttr::get(&getContext(), AliasKind::Operand, target)));
    kernel->setAttr("takes_over", builder.getI32IntegerAttr(target));
    ++numInPlace;
    return success();
  }
};
} // namespace

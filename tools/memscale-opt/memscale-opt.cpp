//===- memscale-opt.cpp - Passes on textual IR -----------------------------===//
//
// The usual optimizer driver of MLIR with memscale's dialect and passes, and
// the generic canonicalizations that the tests hold against them.
//
//===----------------------------------------------------------------------===//

#include "ir/Memscale.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

void registerTestMutations();

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<memscale::ir::MemscaleDialect>();
  memscale::passes::registerMemscalePasses();
  memscale::passes::registerPipelines();
  registerTestMutations();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "memscale optimizer driver\n", registry));
}

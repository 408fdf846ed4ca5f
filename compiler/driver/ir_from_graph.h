// The captured graph as a module with one memscale.step. No torch in here.
#pragma once

#include "compiler/capture/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace memscale::driver {

/// A verified module that holds `@step` in the phase captured. A graph that contradicts itself (a result that shares memory with
/// something the call does not read, an operand that nothing defines) is an error diagnostic and a null module.
mlir::OwningOpRef<mlir::ModuleOp> ir_from_graph(mlir::MLIRContext& context, const capture::Graph& graph);

}  // namespace memscale::driver

//===- Liveness.h - Last uses and the memory of a step ----------*- C++ -*-===//
//
// When names die, and how many bytes stand while each operation runs. A storage
// lives as long as one of its names; outputs and gradients belong to the caller
// once they exist.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_ANALYSIS_LIVENESS_H
#define MEMSCALE_PASSES_ANALYSIS_LIVENESS_H

#include "passes/analysis/Storages.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace memscale::passes {

/// The operation that uses `value` last, its definition if nothing does. `memscale.free` is no use.
mlir::Operation *lastUse(mlir::Value value);

struct MemoryOptions {
  int64_t rounding_bytes = 1;
  int64_t static_bytes = 0; // beside the arguments: optimizer state, reserve
  llvm::function_ref<int64_t(ir::KernelOpInterface)> workspace_bytes = nullptr;
};

struct MemoryReport {
  int64_t base_bytes = 0; // arguments and static bytes
  int64_t peak_bytes = 0;
  mlir::Operation *peak = nullptr;   // the first operation that reaches it; null for a step without kernels
  std::vector<int32_t> live_at_peak; // storages that are no arguments, largest first, then in order of definition
};

/// Counts bytes over the step. In the phase `scheduled` names die at their `memscale.free`, before that at their last use.
MemoryReport measureMemory(ir::StepOp step, const Storages &storages, const MemoryOptions &options);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_ANALYSIS_LIVENESS_H

//===- CostModel.h - Time and workspaces of kernels -------------*- C++ -*-===//
//
// What the planner must know of a kernel beyond its memory, as functions, so
// that the problem can be built with any source of costs.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_POLICY_COSTMODEL_H
#define MEMSCALE_PASSES_POLICY_COSTMODEL_H

#include "ir/Memscale.h"

#include <functional>

namespace memscale::passes {

struct CostModel {
  std::function<double(ir::KernelOpInterface)> time_us;
  /// Transient bytes while the kernel runs; -1: unknown.
  std::function<int64_t(ir::KernelOpInterface)> workspace_bytes;
  int64_t rounding_bytes = 1; // blocks of the target's allocator
};

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_POLICY_COSTMODEL_H

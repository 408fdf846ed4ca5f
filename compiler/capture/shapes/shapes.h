// Shape functions: what a kernel's results look like, for ops whose meta kernel PyTorch has in Python alone, and for ops whose
// real kernel on the target differs from libtorch's meta kernel. docs/adding-an-op.md says how to add one.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "compiler/capture/capture.h"

namespace memscale::shapes {

/// Replaces the arguments on top of the stack (meta tensors; 0-d CPU tensors may be among them) by meta results with the sizes,
/// strides, dtype, storage bytes and aliasing of the real kernel.
using ShapeFn = void (*)(const c10::OperatorHandle&, torch::jit::Stack&);

/// Null if the op has no entry for the target: then libtorch's own meta kernel counts.
ShapeFn find_shape_function(const c10::OperatorName& name, const capture::Target& target);

/// True if libtorch's C++ meta kernel does not give the op's results on the target: it has none, or the table has an entry.
bool needs_shape_function(const c10::OperatorHandle& op, const capture::Target& target);

/// Names of all entries for a target ("cpu", "cuda"), for tests and docs: "aten::relu", "aten::where.self".
std::vector<std::string> shape_function_names(const std::string& device);

}  // namespace memscale::shapes

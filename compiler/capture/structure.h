// Nested inputs and outputs of forward as JSON (docs/formats/plan.md) and flat tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace memscale::capture {

/// Positional arguments of the ScriptModule's forward from the flat tensors. Throws CaptureFault where the structure is not
/// understood.
std::vector<c10::IValue> build_inputs(const std::string& input_structure, const std::vector<at::Tensor>& tensors);

/// Appends the tensors of `result` to `tensors` and returns their structure.
std::string flatten_outputs(const c10::IValue& result, std::vector<at::Tensor>& tensors);

}  // namespace memscale::capture

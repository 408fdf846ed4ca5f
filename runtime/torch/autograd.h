// memscale::run: a planned forward, with the planned backward attached to its outputs.
#pragma once

#include <vector>

#include "runtime/torch/plan_object.h"

namespace memscale::runtime {

/// Runs the plan's forward on these tensors, which stand in the plan's order of each role. With gradients enabled the outputs
/// carry a chain of autograd nodes, one per segment, that runs the plan's backward. Throws c10::Error.
std::vector<at::Tensor> run_plan(const c10::intrusive_ptr<PlanObject>& plan, at::TensorList parameters, at::TensorList buffers,
                                 at::TensorList inputs);

}  // namespace memscale::runtime

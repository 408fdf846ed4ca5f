// The planned ScriptModule: the original's attributes and methods, the plan, and a forward that runs it.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "compiler/import/model_torch.h"
#include "runtime/plan_generated.h"

namespace memscale::exporter {

/// A new root over the original's own submodules and tensors, so that names, order, tying and requires_grad stay what they are.
/// Its method _memscale_original is the original's forward. The plan attribute is set by set_plan. Throws WrapperError,
/// c10::Error.
torch::jit::Module make_planned_module(const import::Model& model, const fb::PlanT& plan);

/// Sets the attribute _memscale_plan to a memscale.Plan of these bytes. Throws c10::Error if the runtime refuses them.
void set_plan(torch::jit::Module& module, const std::vector<uint8_t>& bytes);

}  // namespace memscale::exporter

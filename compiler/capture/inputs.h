// The inputs that are captured: what the archive says of them and what --shape adds.
#pragma once

#include <string>
#include <vector>

#include "compiler/capture/capture.h"
#include "compiler/import/model_torch.h"

namespace memscale::capture {

struct SettledInputs {
  std::vector<InputSpec> specs;  // one per leaf of `structure`, in order
  std::string structure;         // Model::input_structure with optional and open places settled
};

/// Matches `given` with the model's inputs: by name, by decimal position, or in order. An optional tensor without a shape becomes
/// None; lists and dicts of tensors take the elements named "xs.0", "batch.ids". Throws CaptureFault (kUsage) for what is
/// missing, unknown or given twice.
SettledInputs settle_inputs(const import::Model& model, const std::vector<InputSpec>& given);

}  // namespace memscale::capture

// Reads a model.ms.pt without unpickling: the plan from its extra record, weights from the storage records that it names.
#pragma once

#include <string>
#include <vector>

#include "runtime/torch/plan_object.h"

namespace memscale::runtime {

struct LoadedArchive {
  c10::intrusive_ptr<PlanObject> plan;
  std::vector<at::Tensor> parameters;  // in plan order, requires_grad as the plan says, on the CPU (meta without weights)
  std::vector<at::Tensor> buffers;
};

/// Throws c10::Error: no such file, no plan inside, damaged records, weights asked of an archive that has none.
LoadedArchive load_archive(const std::string& path, bool load_weights);

}  // namespace memscale::runtime

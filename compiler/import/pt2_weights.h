// Parameters, buffers and tensor constants of a torch.export archive as tensors.
// Needs a checked archive. Tensors over stored bytes keep the mapping of the file alive; writes to them stay in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/import/archive_kind.h"
#include "compiler/import/pt2_types.h"

namespace memscale::import {

struct Payload {
  std::string name;
  at::Tensor tensor;  // the same object for names that share a payload under one layout
  bool is_parameter = false;
};

struct Payloads {
  std::vector<Payload> list;            // in the order of the configuration files: the state_dict's order, then constants
  std::map<std::string, size_t> index;  // by name
  bool structure_only = false;          // some tensor has no bytes in the archive
};

/// `model` is the model's name inside the archive ("model"). Without `read_weights` all tensors are meta tensors.
Payloads read_payloads(const Archive& archive, const std::string& model, bool read_weights);

}  // namespace memscale::import

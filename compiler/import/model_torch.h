// The torch side of an opened model. Both formats become a ScriptModule, so capture, fall-back and export have one form.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "compiler/import/model.h"

namespace memscale::import {

/// A parameter or buffer of the module, tied tensors once, in state_dict order of first appearance.
struct StateTensor {
  std::string name;                  // fully qualified
  std::vector<std::string> aliases;  // further names of the same tensor
  at::Tensor tensor;                 // meta if weights were not read
  bool is_parameter = false;
  bool requires_grad = false;
  bool persistent = true;
};

struct Model {
  torch::jit::Module module;  // method "forward" is the training graph; its inputs are flat tensors or TorchScript containers
  std::vector<StateTensor> state;        // the same tensors as the module's attributes
  std::vector<std::string> state_names;  // of `state`, aliases included, in the order of the original's modules; may be empty
  ModelInfo info;
  std::string input_structure;        // JSON as in docs/formats/plan.md; for TorchScript derived from forward's schema
  std::string output_structure;       // empty for TorchScript: capture derives it from what forward returned
  std::string path;                   // where weights are read from
  std::vector<std::string> warnings;  // what the archive lost or what was assumed: reported to the user
};

}  // namespace memscale::import

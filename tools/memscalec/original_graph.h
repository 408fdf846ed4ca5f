// The original graph as LibTorch runs it: what a plan is compared with.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/support/error.h"
#include "runtime/plan_generated.h"

namespace memscale::cli {

class OriginalGraph {
 public:
  /// From the planned archive itself (`against` empty) or from the archive that it was compiled from. May throw c10::Error.
  static Expected<OriginalGraph> open(const std::string& planned, const std::string& against, const fb::PlanT& plan);

  /// The outputs' tensors, in order. Throws what the graph throws.
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);

  /// The tensor of a parameter or buffer by its first name; undefined if there is none.
  at::Tensor state(const fb::ArgumentT& argument) const;
  /// Puts `tensor` in the place of a parameter or buffer, under all its names.
  void set_state(const fb::ArgumentT& argument, const at::Tensor& tensor);

 private:
  OriginalGraph(torch::jit::Module module, std::string method, bool flat, std::string input_structure)
      : module_(std::move(module)), method_(std::move(method)), flat_(flat), input_structure_(std::move(input_structure)) {}

  torch::jit::Module module_;
  std::string method_;
  bool flat_;
  std::string input_structure_;
};

}  // namespace memscale::cli

// Inputs that a graph accepts: floats from a normal distribution, integers as large as the graph takes without an error.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/plan_generated.h"

namespace memscale::cli {

class RandomInputs {
 public:
  /// `accepts` runs the original graph without gradients: 0 if it throws, 1 if an output is not finite, 2 if all is well. What it
  /// changes (buffers, the generator) is put back by the caller.
  RandomInputs(const fb::PlanT& plan, uint64_t seed, const std::function<int(const std::vector<at::Tensor>&)>& accepts);

  /// The inputs of one step; different for each call.
  std::vector<at::Tensor> next();

  bool accepted() const { return accepted_ > 0; }
  bool finite() const { return accepted_ == 2; }
  std::vector<std::string> describe() const;

 private:
  at::Tensor make(size_t input, int64_t bound);

  std::vector<const fb::ArgumentT*> arguments_;
  std::vector<at::ScalarType> dtypes_;
  std::vector<int64_t> bounds_;  // of integer inputs: 0..bound-1
  at::Generator generator_;
  int accepted_ = 0;
};

/// The torch dtype of a plan dtype. Throws std::runtime_error for one that inputs cannot be made of.
at::ScalarType scalar_type(const std::string& dtype);

}  // namespace memscale::cli

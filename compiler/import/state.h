// The state of a module as a list: every parameter, buffer and tensor attribute, tied ones once.
// Needs a module whose tensors are set; destroys nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/import/model_torch.h"

namespace memscale::import {

/// Appends `found` to the state, or its name to the aliases of the tensor that it is (the same storage under the same layout,
/// or, for tensors without bytes, the same TensorImpl).
class StateList {
 public:
  void add(StateTensor found);
  /// The names in the order in which they were added.
  const std::vector<std::string>& names() const { return names_; }
  /// Error kUnsupported: two tensors, one of them trained, overlap in memory without being the same.
  Expected<std::vector<StateTensor>> take();

 private:
  std::vector<StateTensor> state_;
  std::vector<std::string> names_;
  std::unordered_map<const void*, std::vector<size_t>> by_memory_;  // storage, or tensor if it has no bytes → places in state_
};

/// One list in the order of the modules from two lists that are each in that order: of parameters and of buffers.
std::vector<std::string> merge_names(const std::vector<std::string>& parameters, const std::vector<std::string>& buffers);

/// Fills parameter_count, parameter_bytes and buffer_bytes from the state.
void count_state(const std::vector<StateTensor>& state, ModelInfo& info);

/// "f32" etc.; the ScalarType's own name for one that the plan format has no name for.
std::string dtype_name(at::ScalarType type);

}  // namespace memscale::import

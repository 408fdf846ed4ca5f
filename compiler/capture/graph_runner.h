// Runs a TorchScript method node by node, so that every dispatcher call has a known source line and module path.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "compiler/capture/recorder.h"

namespace memscale::capture {

class GraphRunner {
 public:
  /// `twins` maps the module's own tensors to what stands for them in the capture.
  GraphRunner(Recorder& recorder, const torch::jit::Module& module, std::unordered_map<const c10::TensorImpl*, at::Tensor> twins);

  /// Runs `forward` on `inputs` (without self).
  c10::IValue run(std::vector<c10::IValue> inputs);

  /// Location of the forward node that made each autograd sequence number, by its first number.
  const std::map<uint64_t, Location>& sequence_locations() const { return sequence_locations_; }

 private:
  using Values = std::unordered_map<const torch::jit::Value*, c10::IValue>;

  std::vector<c10::IValue> run_method(const torch::jit::Graph& graph, std::vector<c10::IValue> inputs, const std::string& path);
  void run_block(const torch::jit::Block& block, Values& values, const std::string& path);
  void run_node(const torch::jit::Node& node, Values& values, const std::string& path);
  void run_if(const torch::jit::Node& node, Values& values, const std::string& path);
  void run_loop(const torch::jit::Node& node, Values& values, const std::string& path);
  void run_call(const torch::jit::Node& node, Values& values, const std::string& path);
  void run_operator(const torch::jit::Node& node, Values& values);
  bool run_structural(const torch::jit::Node& node, Values& values);
  /// Twins in place of the module's tensors, in containers too.
  c10::IValue with_twins(const c10::IValue& value) const;
  c10::IValue get_attribute(const c10::IValue& object, const std::string& name);

  Recorder& recorder_;
  torch::jit::Module module_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> twins_;
  std::unordered_map<const c10::ivalue::Object*, std::string> paths_;
  std::map<std::pair<const c10::ivalue::Object*, std::string>, c10::IValue> assigned_;
  std::unordered_map<const torch::jit::Value*, c10::IValue> constants_;
  std::map<uint64_t, Location> sequence_locations_;
  int call_depth_ = 0;
};

}  // namespace memscale::capture

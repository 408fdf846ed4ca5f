// Loading and calling of the original graph.
#include "tools/memscalec/original_graph.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "compiler/capture/structure.h"
#include "compiler/import/model_torch.h"

namespace memscale::cli {
namespace {

constexpr const char* kMethod = "_memscale_original";

/// The module that owns the last part of a qualified name.
std::optional<std::pair<torch::jit::Module, std::string>> owner_of(const torch::jit::Module& root, const std::string& name) {
  torch::jit::Module module = root;
  size_t begin = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; begin = dot + 1, dot = name.find('.', begin)) {
    const std::string part = name.substr(begin, dot - begin);
    if (!module.hasattr(part) || !module.attr(part).isModule()) return std::nullopt;
    module = module.attr(part).toModule();
  }
  if (!module.hasattr(name.substr(begin))) return std::nullopt;
  return std::make_pair(module, name.substr(begin));
}

}  // namespace

Expected<OriginalGraph> OriginalGraph::open(const std::string& planned, const std::string& against, const fb::PlanT& plan) {
  if (!against.empty()) {
    Expected<std::shared_ptr<import::Model>> model = import::open(against);
    if (!model) return model.error();
    return OriginalGraph((*model)->module, "forward", (*model)->info.format == "torch.export", (*model)->input_structure);
  }
  torch::jit::Module module = torch::jit::load(planned, c10::Device(c10::kCPU));
  const auto method = module.find_method(kMethod);
  if (!method) {
    return Error{Exit::kUnsupported, "'" + planned + "' holds no original graph (method " + std::string(kMethod) + ")",
                 "name the archive that it was compiled from: --against model.pt"};
  }
  const auto& arguments = method->function().getSchema().arguments();
  const auto inputs =
      std::count_if(plan.arguments.begin(), plan.arguments.end(), [](const auto& a) { return a->role == fb::Role::Input; });
  const bool flat = std::all_of(arguments.begin() + 1, arguments.end(),
                                [](const c10::Argument& a) { return a.type()->kind() == c10::TypeKind::TensorType; }) &&
                    static_cast<size_t>(inputs) + 1 == arguments.size();
  return OriginalGraph(module, kMethod, flat, plan.input_structure);
}

std::vector<at::Tensor> OriginalGraph::forward(const std::vector<at::Tensor>& inputs) {
  // The profiling executor reorders gradient sums from the second call on; without it the numbers are eager's.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  std::vector<c10::IValue> arguments =
      flat_ ? std::vector<c10::IValue>(inputs.begin(), inputs.end()) : capture::build_inputs(input_structure_, inputs);
  const c10::IValue result = module_.get_method(method_)(std::move(arguments));
  std::vector<at::Tensor> outputs;
  capture::flatten_outputs(result, outputs);
  return outputs;
}

at::Tensor OriginalGraph::state(const fb::ArgumentT& argument) const {
  std::vector<std::string> names = {argument.name};
  names.insert(names.end(), argument.aliases.begin(), argument.aliases.end());
  for (const std::string& name : names) {
    const auto owner = owner_of(module_, name);
    if (owner && owner->first.attr(owner->second).isTensor()) return owner->first.attr(owner->second).toTensor();
  }
  return {};
}

void OriginalGraph::set_state(const fb::ArgumentT& argument, const at::Tensor& tensor) {
  std::vector<std::string> names = {argument.name};
  names.insert(names.end(), argument.aliases.begin(), argument.aliases.end());
  for (const std::string& name : names) {
    if (auto owner = owner_of(module_, name)) owner->first.setattr(owner->second, tensor);
  }
}

}  // namespace memscale::cli

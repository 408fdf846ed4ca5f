// The table of shape functions. Needs libtorch's dispatcher; built once, read only.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

const Tables& tables() {
  static const Tables built = [] {
    Tables t;
    add_pointwise(t);
    add_losses(t);
    add_reductions(t);
    add_normalization(t);
    add_convolution(t);
    add_pooling(t);
    add_rearranging(t);
    add_attention(t);
    add_recurrent(t);
    add_indexing(t);
    add_linear_algebra(t);
    add_spectral(t);
    add_creation(t);
    return t;
  }();
  return built;
}

const std::map<std::string, ShapeFn>& table_of(const std::string& device) {
  return device == "cuda" ? tables().cuda : tables().cpu;
}

}  // namespace

ShapeFn find_shape_function(const c10::OperatorName& name, const capture::Target& target) {
  const auto& table = table_of(target.device);
  const auto found = table.find(toString(name));
  return found == table.end() ? nullptr : found->second;
}

bool needs_shape_function(const c10::OperatorHandle& op, const capture::Target& target) {
  if (find_shape_function(op.operator_name(), target)) return true;
  // hasComputedKernelForDispatchKey is no use here: libtorch's fallback for Meta, which throws, counts there as a kernel.
  for (const auto key : {c10::DispatchKey::Meta, c10::DispatchKey::CompositeImplicitAutograd,
                         c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::CompositeExplicitAutogradNonFunctional})
    if (op.hasKernelForDispatchKey(key)) return false;
  return true;
}

std::vector<std::string> shape_function_names(const std::string& device) {
  std::vector<std::string> names;
  for (const auto& [name, function] : table_of(device)) names.push_back(name);
  return names;
}

}  // namespace memscale::shapes

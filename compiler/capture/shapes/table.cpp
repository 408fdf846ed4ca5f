// The table of shape functions. Built once; read only.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

struct Tables {
  Table cpu, cuda;
};

const Tables& tables() {
  static const Tables built = [] {
    Tables t;
    add_pointwise(t.cpu, t.cuda);
    add_normalization(t.cpu, t.cuda);
    add_convolution(t.cpu, t.cuda);
    add_attention(t.cpu, t.cuda);
    add_recurrent(t.cpu, t.cuda);
    add_indexing(t.cpu, t.cuda);
    return t;
  }();
  return built;
}

}  // namespace

ShapeFn find_shape_function(const c10::OperatorName& name, const capture::Target& target) {
  const Table& table = target.device == "cuda" ? tables().cuda : tables().cpu;
  auto found = table.find(name.name + "." + name.overload_name);
  if (found == table.end()) found = table.find(name.name);
  return found == table.end() ? nullptr : found->second;
}

std::vector<std::string> shape_function_names(const std::string& device) {
  std::vector<std::string> names;
  for (const auto& [name, function] : device == "cuda" ? tables().cuda : tables().cpu) names.push_back(name);
  return names;
}

}  // namespace memscale::shapes

// Inference of tying from uses; see the header for the rule. Needs the parsed program; replaces tensors of tied payloads.
#include "compiler/import/pt2_tying.h"

#include <set>
#include <unordered_map>

#include "compiler/import/pt2_location.h"
#include "compiler/import/pt2_module.h"

namespace memscale::import {
namespace {

struct Uses {
  std::set<size_t> used;                                        // payloads used anywhere
  std::unordered_map<std::string, std::set<size_t>> by_module;  // innermost module path → payloads
};

void collect(const Json& value, const std::unordered_map<std::string, size_t>& names, const std::string& module, Uses& uses) {
  if (value.is_object()) {
    auto named = value.find("name");
    if (value.size() == 1 && named != value.end() && named->is_string()) {
      auto it = names.find(named->get_ref<const std::string&>());
      if (it == names.end()) return;
      uses.used.insert(it->second);
      uses.by_module[module].insert(it->second);
      return;
    }
    if (value.contains("nodes") && value.contains("tensor_values"))
      return;  // a region has its own names; its operands are counted
  }
  if (value.is_structured()) {
    for (const Json& inner : value) collect(inner, names, module, uses);
  }
}

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.requires_grad() == b.requires_grad();
}

}  // namespace

void infer_tying(const Json& graph, const std::vector<StateInput>& inputs, Payloads& payloads,
                 std::vector<std::string>& warnings) {
  std::unordered_map<std::string, size_t> names;
  for (const StateInput& input : inputs) names[input.placeholder] = input.payload;
  Uses uses;
  for (const Json& node : array_of(member(graph, "nodes"), "nodes")) {
    collect(array_of(member(node, "inputs"), "inputs"), names, location_of(node).module_path, uses);
  }
  for (const StateInput& input : inputs) {
    Payload& lost = payloads.list[input.payload];
    if (!input.parameter || uses.used.count(input.payload) > 0) continue;
    auto in_module = uses.by_module.find(split_name(lost.name).first);
    if (in_module == uses.by_module.end()) continue;
    const std::string own = split_name(lost.name).first + ".";
    std::vector<size_t> candidates;
    for (size_t other : in_module->second) {
      const Payload& p = payloads.list[other];
      if (p.is_parameter && p.name.rfind(own, 0) != 0 && same_layout(p.tensor, lost.tensor)) candidates.push_back(other);
    }
    if (candidates.size() != 1) continue;
    lost.tensor = payloads.list[candidates[0]].tensor;
    warnings.push_back("'" + lost.name + "' is taken to be tied to '" + payloads.list[candidates[0]].name +
                       "': the archive holds no weights to see it by");
  }
}

}  // namespace memscale::import

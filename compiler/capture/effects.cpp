// Effects of ATen calls. Needs schemas and tags only.
#include "compiler/capture/effects.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>

namespace memscale::capture {
namespace {

const c10::IValue* argument_named(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments,
                                  std::string_view name) {
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].name() == name) return &arguments[i];
  return nullptr;
}

bool is_false(const c10::IValue* value) { return value && value->isBool() && !value->toBool(); }

struct HiddenMutation {
  std::string_view op;
  std::string_view flag;  // boolean argument under which it happens; empty: always
  std::vector<std::string_view> arguments;
};

const std::vector<HiddenMutation>& hidden_mutations() {
  static const std::vector<HiddenMutation> table = {
      {"aten::native_batch_norm", "training", {"running_mean", "running_var"}},
      {"aten::cudnn_batch_norm", "training", {"running_mean", "running_var"}},
      {"aten::miopen_batch_norm", "training", {"running_mean", "running_var"}},
      {"aten::_batch_norm_with_update", "", {"running_mean", "running_var"}},
  };
  return table;
}

}  // namespace

bool draws_random_numbers(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  for (const std::string_view name : {"dropout_p", "dropout", "p"}) {
    const c10::IValue* p = argument_named(op, arguments, name);
    const bool is_probability_of_drop = name != "p" || op.operator_name().name.find("dropout") != std::string::npos;
    if (p && is_probability_of_drop && p->isDouble() && p->toDouble() == 0.0) return false;
  }
  for (const std::string_view name : {"train", "training"})
    if (is_false(argument_named(op, arguments, name))) return false;
  return true;
}

std::vector<size_t> mutated_arguments(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  std::vector<size_t> mutated;
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].alias_info() && schema[i].alias_info()->isWrite()) mutated.push_back(i);
  for (const HiddenMutation& entry : hidden_mutations()) {
    if (op.operator_name().name != entry.op) continue;
    if (!entry.flag.empty() && is_false(argument_named(op, arguments, entry.flag))) continue;
    for (size_t i = 0; i < schema.size(); ++i)
      if (std::find(entry.arguments.begin(), entry.arguments.end(), schema[i].name()) != entry.arguments.end())
        mutated.push_back(i);
  }
  return mutated;
}

bool is_data_dependent(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  const std::string& name = op.operator_name().name;
  if (name == "aten::index") {  // only masks make its shape depend on contents
    bool mask = false;
    for (const c10::IValue& index : arguments.at(1).toListRef())
      mask = mask || (index.isTensor() && index.toTensor().defined() &&
                      (index.toTensor().scalar_type() == at::kBool || index.toTensor().scalar_type() == at::kByte));
    return mask;
  }
  if (name == "aten::repeat_interleave") {
    const c10::IValue* size = argument_named(op, arguments, "output_size");
    if (size && !size->isNone()) return false;
  }
  if (name == "aten::_local_scalar_dense" || name == "aten::equal" || name == "aten::is_nonzero") return true;
  return op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output);
}

}  // namespace memscale::capture

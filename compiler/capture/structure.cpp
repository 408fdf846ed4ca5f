// Flattening and building of nested values. Needs nothing but the structure JSON.
#include "compiler/capture/structure.h"

#include <ATen/core/Dict.h>
#include <ATen/core/jit_type.h>

#include <nlohmann/json.hpp>

#include "compiler/capture/recorder.h"

namespace memscale::capture {
namespace {

using nlohmann::json;

c10::IValue build(const json& node, const std::vector<at::Tensor>& tensors) {
  if (node.contains("leaf")) return tensors.at(node["leaf"].get<size_t>());
  if (node.contains("none")) return {};
  if (node.contains("tuple")) {
    std::vector<c10::IValue> elements;
    for (const json& element : node["tuple"]) elements.push_back(build(element, tensors));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (node.contains("list")) {
    c10::List<at::Tensor> list;
    for (const json& element : node["list"]) list.push_back(build(element, tensors).toTensor());
    return list;
  }
  if (node.contains("dict")) {
    c10::Dict<std::string, at::Tensor> dict;
    for (const auto& [key, element] : node["dict"].items()) dict.insert(key, build(element, tensors).toTensor());
    return dict;
  }
  if (node.contains("const")) {
    const json& value = node["const"];
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_number_float()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
  }
  throw CaptureFault(Exit::kUnsupported, "an input of forward has a structure that is not supported: " + node.dump());
}

json flatten(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return {{"none", true}};
    tensors.push_back(value.toTensor());
    return {{"leaf", tensors.size() - 1}};
  }
  if (value.isNone()) return {{"none", true}};
  if (value.isTuple()) {
    json elements = json::array();
    for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(flatten(element, tensors));
    const auto type = value.toTupleRef().type();
    if (type && type->name() && type->schema()) {
      json keys = json::array();
      for (const auto& field : type->schema()->arguments()) keys.push_back(field.name());
      return {{"type", type->name()->name()}, {"context", "namedtuple"}, {"keys", keys}, {"children", elements}};
    }
    return {{"tuple", elements}};
  }
  if (value.isGenericDict()) {
    json elements = json::object();
    for (const auto& entry : value.toGenericDict()) {
      if (!entry.key().isString()) throw CaptureFault(Exit::kUnsupported, "forward returns a dict whose keys are no strings");
      elements[entry.key().toStringRef()] = flatten(entry.value(), tensors);
    }
    return {{"dict", elements}};
  }
  if (value.isList()) {
    json elements = json::array();
    for (const c10::IValue& element : value.toListRef()) elements.push_back(flatten(element, tensors));
    return {{"list", elements}};
  }
  if (value.isInt()) return {{"const", value.toInt()}};
  if (value.isDouble()) return {{"const", value.toDouble()}};
  if (value.isBool()) return {{"const", value.toBool()}};
  if (value.isString()) return {{"const", value.toStringRef()}};
  throw CaptureFault(Exit::kUnsupported, std::string("forward returns a value of type ") + value.tagKind() +
                                             ": expected tensors, tuples, lists, dicts and numbers");
}

}  // namespace

std::vector<c10::IValue> build_inputs(const std::string& input_structure, const std::vector<at::Tensor>& tensors) {
  const json structure = json::parse(input_structure);
  std::vector<c10::IValue> inputs;
  for (const json& argument : structure.at("args")) inputs.push_back(build(argument, tensors));
  const json& names = structure.at("names");  // keyword-only arguments follow the positional ones, in the schema's order
  for (size_t i = structure["args"].size(); i < names.size(); ++i)
    inputs.push_back(build(structure["kwargs"].at(names[i].get<std::string>()), tensors));
  return inputs;
}

std::string flatten_outputs(const c10::IValue& result, std::vector<at::Tensor>& tensors) {
  return flatten(result, tensors).dump();
}

}  // namespace memscale::capture

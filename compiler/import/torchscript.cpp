// TorchScript archives: checked, loaded by LibTorch from the mapped bytes, and described.
//
// Needs a zip archive that passed the reader's checks. Destroys nothing. Names of inputs and their structure come from the schema
// of `forward` (docs/formats/pt2.md, "Input structures").
#include "compiler/import/torchscript.h"

#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "compiler/import/pickle_check.h"
#include "compiler/import/state.h"

namespace memscale::import {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kModuleDepth = 1000;
constexpr int kBracketDepth = 500;
constexpr uint64_t kCodeBytes = uint64_t{256} << 20;
constexpr uint64_t kPickleBytes = uint64_t{1} << 30;

class MappedAdapter : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MappedAdapter(std::shared_ptr<MappedFile> file) : file_(std::move(file)) {}
  size_t size() const override { return file_->size(); }
  size_t read(uint64_t position, void* buffer, size_t n, const char*) const override {
    if (position >= file_->size()) return 0;
    n = std::min(n, file_->size() - static_cast<size_t>(position));
    std::memcpy(buffer, file_->data() + position, n);
    return n;
  }

 private:
  std::shared_ptr<MappedFile> file_;
};

/// The deepest nesting of brackets; LibTorch's parser recurses on it. Brackets in strings count: the limit is far above what
/// generated code nests.
int bracket_depth(const std::string& code) {
  int depth = 0, deepest = 0;
  for (char c : code) {
    if (c == '(' || c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

/// What the pickle `name` may claim: the bytes of the records beside it and the element sizes of storage classes.
PickleClaims claims_for(const Archive& archive, const std::string& name) {
  PickleClaims claims;
  const std::string folder = archive.root + name.substr(0, name.size() - 4) + "/";
  for (const ZipEntry& e : archive.zip.entries()) {
    if (e.name.rfind(folder, 0) == 0) claims.record_bytes[e.name.substr(folder.size())] = static_cast<int64_t>(e.bytes);
  }
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
    auto type = static_cast<c10::ScalarType>(i);
    if (type == c10::ScalarType::Undefined) continue;
    claims.item_bytes[std::string(c10::toString(type)) + "Storage"] = static_cast<int64_t>(c10::elementSize(type));
  }
  return claims;
}

/// Checksums of all records, and limits on what LibTorch parses by recursion.
Expected<Success> check_records(const Archive& archive) {
  for (const ZipEntry& e : archive.zip.entries()) {
    std::string name = e.name.substr(archive.root.size());
    bool code = name.rfind("code/", 0) == 0, pickle = name.size() > 4 && name.compare(name.size() - 4, 4, ".pkl") == 0;
    if (!code && !e.deflated && !pickle) {
      if (!archive.zip.checksum_matches(e)) {
        return Error{Exit::kUnsafe, "record '" + e.name + "' has another checksum than stated: its bytes were changed",
                     "write or copy the archive again"};
      }
      continue;
    }
    Expected<std::string> bytes = archive.zip.read(e, code ? kCodeBytes : kPickleBytes);
    if (!bytes) return bytes.error();
    if (name == "data.pkl" || name == "constants.pkl") {
      Expected<Success> claims = check_pickle(*bytes, e.name, claims_for(archive, name));
      if (!claims) return claims;
    }
    if (code && !pickle && bracket_depth(*bytes) > kBracketDepth) {
      return Error{Exit::kUnsafe, "record '" + e.name + "' nests brackets more than " + std::to_string(kBracketDepth) + " deep",
                   "write the archive with torch.jit.save"};
    }
  }
  return Success{};
}

Expected<Success> collect_state(const torch::jit::Module& module, const std::string& prefix, size_t depth, StateList& list) {
  if (depth > kModuleDepth)
    return Error{Exit::kUnsafe, "modules are nested more than " + std::to_string(kModuleDepth) + " deep", ""};
  const auto type = module.type();
  auto tensors = [&](auto&& wanted, bool parameter, bool persistent) {
    for (size_t i = 0; i < type->numAttributes(); ++i) {
      const c10::IValue& value = module._ivalue()->getSlot(i);
      if (!value.isTensor() || !value.toTensor().defined() || !wanted(i)) continue;
      StateTensor s;
      s.name = prefix + type->getAttributeName(i);
      s.tensor = value.toTensor();
      s.is_parameter = parameter;
      s.requires_grad = s.tensor.requires_grad();
      s.persistent = persistent;
      list.add(std::move(s));
    }
  };
  tensors([&](size_t i) { return type->is_parameter(i); }, true, true);
  tensors([&](size_t i) { return !type->is_parameter(i) && type->is_buffer(i); }, false, true);
  tensors([&](size_t i) { return !type->is_parameter(i) && !type->is_buffer(i); }, false, false);
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const c10::IValue& value = module._ivalue()->getSlot(i);
    if (!value.isModule()) continue;
    Expected<Success> inner = collect_state(value.toModule(), prefix + type->getAttributeName(i) + ".", depth + 1, list);
    if (!inner) return inner;
  }
  return Success{};
}

/// The structure of an input of type `type`; leaves are numbered in order and described in `inputs`.
json structure_of(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& fallback,
                  std::vector<InputInfo>& inputs, int depth = 0) {
  using c10::TypeKind;
  auto leaf = [&] {
    InputInfo info;
    info.name = name;
    inputs.push_back(std::move(info));
    return json{{"leaf", inputs.size() - 1}};
  };
  if (depth > 100) return {{"missing", type->repr_str()}};
  switch (type->kind()) {
    case TypeKind::TensorType:
      return leaf();
    case TypeKind::NoneType:
      return {{"none", true}};
    case TypeKind::OptionalType: {
      c10::TypePtr inner = type->expectRef<c10::OptionalType>().getElementType();
      if (inner->kind() == TypeKind::TensorType) {
        json s = leaf();
        s["optional"] = true;
        return s;
      }
      if (!fallback || fallback->isNone()) return {{"none", true}};
      return structure_of(inner, name, fallback, inputs, depth + 1);
    }
    case TypeKind::TupleType: {
      const auto& tuple = type->expectRef<c10::TupleType>();
      json children = json::array();
      size_t i = 0;
      for (const c10::TypePtr& element : tuple.elements()) {
        children.push_back(structure_of(element, name + "." + std::to_string(i++), std::nullopt, inputs, depth + 1));
      }
      if (!tuple.name() || !tuple.schema()) return {{"tuple", std::move(children)}};
      json fields = json::array();
      for (const c10::Argument& a : tuple.schema()->arguments()) fields.push_back(a.name());
      return {{"type", tuple.name()->qualifiedName()},
              {"context", "namedtuple"},
              {"keys", std::move(fields)},
              {"children", std::move(children)}};
    }
    case TypeKind::ListType:
      if (type->expectRef<c10::ListType>().getElementType()->kind() == TypeKind::TensorType) {
        return {{"list", json::array()}, {"open", true}};
      }
      break;
    case TypeKind::DictType:
      if (type->expectRef<c10::DictType>().getValueType()->kind() == TypeKind::TensorType) {
        return {{"dict", json::object()}, {"open", true}};
      }
      break;
    default:
      break;
  }
  if (fallback) {
    if (fallback->isNone()) return {{"none", true}};
    if (fallback->isBool()) return {{"const", fallback->toBool()}};
    if (fallback->isInt()) return {{"const", fallback->toInt()}};
    if (fallback->isDouble()) return {{"const", fallback->toDouble()}};
    if (fallback->isString()) return {{"const", fallback->toStringRef()}};
  }
  return {{"missing", type->repr_str()}};
}

void describe_inputs(const c10::FunctionSchema& schema, Model& model) {
  json names = json::array(), args = json::array(), kwargs = json::object();
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& a = schema.arguments()[i];
    json s = structure_of(a.type(), a.name(), a.default_value(), model.info.inputs);
    names.push_back(a.name());
    if (a.kwarg_only()) {
      kwargs[a.name()] = std::move(s);
    } else {
      args.push_back(std::move(s));
    }
  }
  model.input_structure = json{{"names", names}, {"args", args}, {"kwargs", kwargs}}.dump();
}

}  // namespace

Expected<std::shared_ptr<Model>> open_torchscript(const Archive& archive, const std::string& path) {
  Expected<Success> checked = check_records(archive);
  if (!checked) return checked.error();
  auto model = std::make_shared<Model>();
  model->path = path;
  model->info.format = "torchscript";
  model->module = torch::jit::load(std::make_shared<MappedAdapter>(archive.zip.file()), c10::Device(c10::kCPU));
  std::optional<torch::jit::Method> forward = model->module.find_method("forward");
  if (!forward) {
    return Error{Exit::kUnsupported, "'" + path + "': the module has no method 'forward'",
                 "save a module with a forward: torch.jit.trace or torch.jit.script of the training module"};
  }
  StateList list;
  Expected<Success> collected = collect_state(model->module, "", 0, list);
  if (!collected) return collected.error();
  model->state_names = list.names();
  Expected<std::vector<StateTensor>> state = list.take();
  if (!state) return state.error();
  model->state = std::move(*state);
  count_state(model->state, model->info);
  for (const StateTensor& s : model->state) {
    if (s.tensor.is_meta()) model->info.has_weights = false;
  }
  describe_inputs(forward->function().getSchema(), *model);
  return model;
}

}  // namespace memscale::import

// Writes forward as TorchScript: flatten the arguments as the plan's input structure says, run the plan if its guards hold,
// rebuild the outputs; otherwise call the original graph. Destroys nothing.
#include "compiler/export/wrapper_source.h"

#include <nlohmann/json.hpp>
#include <sstream>

namespace memscale::exporter {
namespace {

using json = nlohmann::ordered_json;

std::string quote(const std::string& text) { return json(text).dump(-1, ' ', /*ensure_ascii=*/true); }

/// A literal that TorchScript reads back as the same value.
std::string literal(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_string() || value.is_number()) return value.is_string() ? quote(value.get<std::string>()) : value.dump();
  throw WrapperError("a constant of the structure is neither number, string nor bool: " + value.dump());
}

/// self.a.b as nested getattr: names such as "0" are no identifiers.
std::string attribute(const std::string& path) {
  std::string expression = "self";
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) expression = "getattr(" + expression + ", " + quote(part) + ")";
  return expression;
}

c10::TypePtr without_optional(const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

class Writer {
 public:
  explicit Writer(const WrapperRequest& request) : request_(request) {}

  WrapperSource run() {
    signature();
    line(1, "ins: List[Tensor] = []");
    line(1, "why = \"\"");
    flatten_arguments();
    if (leaves_ != request_.input_count)
      throw WrapperError("the input structure has " + std::to_string(leaves_) + " tensors, the plan has " +
                         std::to_string(request_.input_count) + " inputs");
    for (const auto& [path, training] : request_.modes) {
      line(1, std::string("if ") + (training ? "not " : "") + attribute(path.empty() ? "training" : path + ".training") + ":");
      line(2,
           "why = " + quote("the module " + (path.empty() ? "" : "'" + path + "' ") + "is in " + (training ? "eval" : "train") +
                            " mode, the plan was compiled in " + (training ? "train" : "eval") + " mode"));
    }
    line(1, "params: List[Tensor] = " + attributes(request_.parameters));
    line(1, "buffers: List[Tensor] = " + attributes(request_.buffers));
    line(1, "if why == \"\":");
    line(2, "if memscale_ops.guards_ok(self._memscale_plan, params, buffers, ins):");
    line(3, "outs = memscale_ops.run(self._memscale_plan, params, buffers, ins)");
    line(3, "return " + outputs());
    line(1, "else:");
    line(2, "memscale_ops.note_fallback(self._memscale_plan, why)");
    line(1, "return self._memscale_original(" + call_arguments() + ")");
    source_.text = out_.str();
    return std::move(source_);
  }

 private:
  const std::vector<c10::Argument>& arguments() const { return request_.original->arguments(); }

  void line(int depth, const std::string& text) { out_ << std::string(4 * static_cast<size_t>(depth), ' ') << text << "\n"; }

  void signature() {
    std::string text = "def forward(self";
    bool keyword_only = false;
    for (size_t i = 1; i < arguments().size(); ++i) {
      const c10::Argument& a = arguments()[i];
      if (a.kwarg_only() && !keyword_only) {
        text += ", *";
        keyword_only = true;
      }
      text += ", " + a.name() + ": " + a.type()->annotation_str();
    }
    if (request_.original->returns().size() != 1) throw WrapperError("forward has not one result");
    line(0, text + ") -> " + result_type()->annotation_str() + ":");
  }

  c10::TypePtr result_type() const { return request_.original->returns()[0].type(); }

  std::string call_arguments() const {
    std::string text;
    for (size_t i = 1; i < arguments().size(); ++i) {
      const c10::Argument& a = arguments()[i];
      text += (i > 1 ? ", " : "") + (a.kwarg_only() ? a.name() + "=" : std::string()) + a.name();
    }
    return text;
  }

  static std::string attributes(const std::vector<std::string>& names) {
    std::string text = "[";
    for (size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + attribute(names[i]);
    return text + "]";
  }

  void flatten_arguments() {
    if (request_.flat) {
      for (size_t i = 1; i < arguments().size(); ++i) {
        if (arguments()[i].type()->kind() != c10::TypeKind::TensorType)
          throw WrapperError("input '" + arguments()[i].name() + "' is no tensor but the model takes flat tensors");
        line(1, "ins.append(" + arguments()[i].name() + ")");
        ++leaves_;
      }
      return;
    }
    const json structure = json::parse(request_.input_structure);
    const json& positional = structure.at("args");
    size_t next = 0;
    for (size_t i = 1; i < arguments().size(); ++i) {
      const c10::Argument& a = arguments()[i];
      const bool keyword = structure.contains("kwargs") && structure["kwargs"].contains(a.name());
      if (!keyword && next >= positional.size())
        throw WrapperError("the input structure says nothing about argument '" + a.name() + "'");
      flatten(keyword ? structure["kwargs"][a.name()] : positional[next++], a.type(), a.name(), a.name(), 1);
    }
  }

  /// Appends the tensors of `expression`, whose static type is `type`, to ins; sets why where the value differs from the
  /// structure.
  void flatten(const json& node, const c10::TypePtr& type, const std::string& expression, const std::string& name, int depth) {
    const std::string value = "v" + std::to_string(variables_++);
    line(depth, value + " = " + expression);
    const bool optional = type->kind() == c10::TypeKind::OptionalType;
    if (node.contains("none")) {
      if (type->kind() == c10::TypeKind::NoneType) return;
      if (!optional) throw WrapperError("argument '" + name + "' was None at capture, its type is " + type->annotation_str());
      line(depth, "if " + value + " is not None:");
      line(depth + 1, "why = " + quote(name + " was None at compile time and is given now"));
      return;
    }
    if (optional) {
      line(depth, "if " + value + " is None:");
      line(depth + 1, "why = " + quote(name + " was given at compile time and is None now"));
      line(depth, "else:");
      ++depth;
    }
    const c10::TypePtr inner = without_optional(type);
    if (node.contains("leaf")) {
      if (node["leaf"].get<size_t>() != leaves_++) throw WrapperError("the leaves of the input structure are not in order");
      if (inner->kind() != c10::TypeKind::TensorType)
        throw WrapperError("argument '" + name + "' is a tensor in the structure, its type is " + type->annotation_str());
      line(depth, "ins.append(" + value + ")");
    } else if (node.contains("const")) {
      line(depth, "if " + value + " != " + literal(node["const"]) + ":");
      line(depth + 1, "why = " + quote(name + " has another value than at compile time (" + node["const"].dump() + ")"));
    } else if (node.contains("list")) {
      const auto list = inner->cast<c10::ListType>();
      if (!list) throw WrapperError("argument '" + name + "' is a list in the structure, its type is " + type->annotation_str());
      const json& children = node["list"];
      line(depth, "if len(" + value + ") != " + std::to_string(children.size()) + ":");
      line(depth + 1,
           "why = " + quote(name + " has another length than at compile time (" + std::to_string(children.size()) + ")"));
      line(depth, "else:");
      line(depth + 1, "pass");
      for (size_t i = 0; i < children.size(); ++i)
        flatten(children[i], list->getElementType(), value + "[" + std::to_string(i) + "]", name + "[" + std::to_string(i) + "]",
                depth + 1);
    } else if (node.contains("dict")) {
      const auto dict = inner->cast<c10::DictType>();
      if (!dict) throw WrapperError("argument '" + name + "' is a dict in the structure, its type is " + type->annotation_str());
      const json& children = node["dict"];
      std::string condition = "len(" + value + ") != " + std::to_string(children.size());
      for (const auto& [key, child] : children.items()) condition += " or " + quote(key) + " not in " + value;
      line(depth, "if " + condition + ":");
      line(depth + 1, "why = " + quote(name + " has other keys than at compile time"));
      line(depth, "else:");
      line(depth + 1, "pass");
      for (const auto& [key, child] : children.items())
        flatten(child, dict->getValueType(), value + "[" + quote(key) + "]", name + "[" + quote(key) + "]", depth + 1);
    } else if (node.contains("tuple") || node.contains("children")) {
      const auto tuple = inner->cast<c10::TupleType>();
      const json& children = node.contains("tuple") ? node["tuple"] : node["children"];
      if (!tuple || tuple->elements().size() != children.size())
        throw WrapperError("argument '" + name + "' is a tuple of " + std::to_string(children.size()) +
                           " in the structure, its type is " + type->annotation_str());
      for (size_t i = 0; i < children.size(); ++i)
        flatten(children[i], tuple->elements()[i], value + "[" + std::to_string(i) + "]", name + "[" + std::to_string(i) + "]",
                depth);
    } else {
      throw WrapperError("argument '" + name + "' has a structure that cannot be checked: " + node.dump());
    }
  }

  std::string outputs() {
    if (!request_.flat) return rebuild(json::parse(request_.output_structure), result_type());
    if (result_type()->kind() == c10::TypeKind::TensorType) return output(0);
    const auto tuple = result_type()->cast<c10::TupleType>();
    if (!tuple || tuple->elements().size() != request_.output_count)
      throw WrapperError("forward returns " + result_type()->annotation_str() + ", the plan has " +
                         std::to_string(request_.output_count) + " outputs");
    std::string text = "(";
    for (size_t i = 0; i < tuple->elements().size(); ++i) text += output(i) + ", ";
    return text + ")";
  }

  std::string output(size_t index) const {
    if (index >= request_.output_count)
      throw WrapperError("the output structure names output " + std::to_string(index) + ", the plan has " +
                         std::to_string(request_.output_count));
    return "outs[" + std::to_string(index) + "]";
  }

  std::string rebuild(const json& node, const c10::TypePtr& declared) {
    const c10::TypePtr type = without_optional(declared);
    if (node.contains("leaf")) return output(node["leaf"].get<size_t>());
    if (node.contains("none")) return "None";
    if (node.contains("const")) return literal(node["const"]);
    if (node.contains("list")) {
      const auto list = type->cast<c10::ListType>();
      std::string text;
      for (const json& child : node["list"])
        text += (text.empty() ? "" : ", ") + rebuild(child, list ? list->getElementType() : type);
      return list ? "annotate(" + type->annotation_str() + ", [" + text + "])" : "[" + text + "]";
    }
    if (node.contains("dict")) {
      const auto dict = type->cast<c10::DictType>();
      std::string text;
      for (const auto& [key, child] : node["dict"].items())
        text += (text.empty() ? "" : ", ") + quote(key) + ": " + rebuild(child, dict ? dict->getValueType() : type);
      return dict ? "annotate(" + type->annotation_str() + ", {" + text + "})" : "{" + text + "}";
    }
    if (node.contains("tuple") || node.contains("children")) {
      const json& children = node.contains("tuple") ? node["tuple"] : node["children"];
      const auto tuple = type->cast<c10::TupleType>();
      if (!tuple || tuple->elements().size() != children.size())
        throw WrapperError("forward's result has a tuple of " + std::to_string(children.size()) + " where its type is " +
                           declared->annotation_str());
      std::string text;
      for (size_t i = 0; i < children.size(); ++i) text += rebuild(children[i], tuple->elements()[i]) + ", ";
      if (!tuple->name() || !tuple->schema()) return "(" + text + ")";
      const std::string maker = "NamedTuple" + std::to_string(source_.named_tuples.size());
      source_.named_tuples[maker] = tuple;
      return maker + "(" + text.substr(0, text.empty() ? 0 : text.size() - 2) + ")";
    }
    throw WrapperError("forward's result has a structure that cannot be rebuilt: " + node.dump());
  }

  const WrapperRequest& request_;
  WrapperSource source_;
  std::ostringstream out_;
  size_t leaves_ = 0;
  size_t variables_ = 0;
};

}  // namespace

WrapperSource write_wrapper(const WrapperRequest& request) { return Writer(request).run(); }

}  // namespace memscale::exporter

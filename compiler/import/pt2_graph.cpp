// Nodes of an exported program → TorchScript nodes: calls, numbers, and the regions that set grad mode or autocast.
// Needs LibTorch's operator registry. Appends only; nothing that is in the graph is changed.
#include "compiler/import/pt2_graph.h"

#include <map>

#include "compiler/import/pt2_types.h"

namespace memscale::import {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Checks of what the plan's guards check anyway. Tensor metadata checks also name the device of the export.
const std::unordered_set<std::string>& assertions() {
  static const std::unordered_set<std::string> names = {"_assert_tensor_metadata",
                                                        "_assert_scalar",
                                                        "_assert_async",
                                                        "_functional_assert_async",
                                                        "_functional_assert_scalar",
                                                        "sym_constrain_range",
                                                        "sym_constrain_range_for_size",
                                                        "_functional_sym_constrain_range",
                                                        "_functional_sym_constrain_range_for_size"};
  return names;
}

struct OpName {
  std::string space, name, overload;
};

/// "torch.ops.aten.add.Tensor" → {aten, add, Tensor}; "default" is the empty overload.
std::optional<OpName> op_name_of(const std::string& target) {
  const std::string prefix = "torch.ops.";
  if (target.rfind(prefix, 0) != 0) return std::nullopt;
  size_t first = target.find('.', prefix.size());
  if (first == std::string::npos) return std::nullopt;
  size_t last = target.find('.', first + 1);
  OpName op;
  op.space = target.substr(prefix.size(), first - prefix.size());
  op.name = target.substr(first + 1, last == std::string::npos ? std::string::npos : last - first - 1);
  op.overload = last == std::string::npos ? "" : target.substr(last + 1);
  if (op.overload == "default") op.overload.clear();
  return op;
}

}  // namespace

void GraphTranslator::unsupported(const std::string& what, const std::string& help) {
  std::string where = here_.shown();
  fail(Exit::kUnsupported, "'" + target_ + "': " + what + (where.empty() ? "" : "\n  at " + where), help);
}

void GraphTranslator::bind(NameScope& scope, const std::string& name, Value* value, bool leaf) {
  if (!scope.values.emplace(name, value).second) broken("the name '" + name + "' is defined twice");
  if (leaf) leaves_.insert(value);
  if (!value->type()->isSubtypeOf(*c10::TensorType::get())) return;
  const Json* metas = find_member(scope.graph, "tensor_values");
  const Json* meta = metas == nullptr ? nullptr : find_member(*metas, name.c_str());
  if (meta == nullptr) return;
  facts_.emplace(value,
                 TensorFacts{scalar_type_of(member(*meta, "dtype")), text_of(member(member(*meta, "device"), "type"), "device")});
}

Value* GraphTranslator::lookup(NameScope& scope, const std::string& name) {
  auto it = scope.values.find(name);
  if (it != scope.values.end()) return it->second;
  // Numbers that export found to be constant have a value but no node.
  for (const char* table : {"sym_int_values", "sym_float_values", "sym_bool_values"}) {
    const Json* values = find_member(scope.graph, table);
    const Json* entry = values == nullptr ? nullptr : find_member(*values, name.c_str());
    if (entry == nullptr) continue;
    auto [kind, value] = union_of(*entry, name.c_str());
    if (kind == "as_int") return constant(integer_of(value, name.c_str()));
    if (kind == "as_float") return constant(real_of(value, name.c_str()));
    if (kind == "as_bool") return constant(boolean_of(value, name.c_str()));
  }
  broken("the value '" + name + "' is used but not defined before");
}

void GraphTranslator::nodes(NameScope& scope) {
  for (const Json& n : array_of(member(scope.graph, "nodes"), "nodes")) node(scope, n);
}

void GraphTranslator::node(NameScope& scope, const Json& json) {
  target_ = text_of(member(json, "target"), "target");
  here_ = location_of(json);
  const NodeLocation location = here_;
  Node* before = graph_.block()->return_node()->prev();
  std::optional<OpName> op = op_name_of(target_);
  if (op && op->space == "higher_order") {
    higher_order(scope, json, op->name);
  } else if (!numbers(scope, json, target_)) {
    if (op && op->space == "aten" && assertions().count(op->name) > 0) {
      ++dropped_assertions_;
      // Functional assertions hand a token on; only a dropped use of it may follow.
      return;
    }
    aten(scope, json, target_);
  }
  for (Node* n = before->next(); n != graph_.block()->return_node(); n = n->next()) {
    if (!n->sourceRange().source() || !n->sourceRange().file_line_col()) locations_.set(n, location);
  }
}

GraphTranslator::Operator GraphTranslator::find_operator(const std::string& name, const std::string& overload) {
  auto [it, fresh] = operators_.try_emplace(name + "." + overload);
  if (!fresh) return it->second;
  for (const Operator& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (op->schema().overload_name() == overload) it->second = op;
  }
  return it->second;
}

/// The overload that takes numbers where `is_number` says so and is otherwise the same: add.Scalar for add.Tensor(x, 1).
GraphTranslator::Operator GraphTranslator::number_variant(const Operator& op, const std::vector<bool>& is_number) {
  const auto& wanted = op->schema().arguments();
  for (const Operator& other : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(op->schema().name()))) {
    const auto& have = other->schema().arguments();
    if (have.size() != wanted.size() || other->schema().returns().size() != op->schema().returns().size()) continue;
    bool fits = true;
    for (size_t i = 0; i < have.size() && fits; ++i) {
      fits = is_number[i] ? have[i].type()->kind() == c10::TypeKind::NumberType : *have[i].type() == *wanted[i].type();
    }
    if (fits) return other;
  }
  return nullptr;
}

Node* GraphTranslator::emit(const c10::FunctionSchema& schema, std::vector<Value*> inputs) {
  Node* n = graph_.create(c10::Symbol::fromQualString(schema.name()), inputs, schema.returns().size());
  for (size_t i = 0; i < schema.returns().size(); ++i) n->output(i)->setType(schema.returns()[i].type());
  graph_.insertNode(n);
  check_overload(n, schema);
  return n;
}

/// TorchScript picks overloads by the types of operands; anything but the wanted one would be another computation.
void GraphTranslator::check_overload(Node* n, const c10::FunctionSchema& wanted) {
  const torch::jit::Operator* op = n->maybeOperator();
  if (op == nullptr) unsupported("TorchScript has no op of the schema " + c10::toString(wanted));
  // With sizes given and no scale factors, both overloads of a one-dimensional upsampling are the same call.
  const bool upsampling = wanted.name().find("upsample_") != std::string::npos && wanted.overload_name() == "vec" &&
                          op->schema().overload_name().empty() && n->inputs().back()->mustBeNone();
  if (op->schema().overload_name() != wanted.overload_name() && !upsampling) {
    unsupported("TorchScript would run the overload '" + c10::toString(op->schema().operator_name()) + "' instead of '" +
                c10::toString(wanted.operator_name()) + "' for these operands");
  }
}

void GraphTranslator::aten(NameScope& scope, const Json& json, const std::string& target) {
  std::optional<OpName> name = op_name_of(target);
  if (!name || name->name.empty())
    unsupported("this function has no form in TorchScript", "rewrite the model with tensor operations");
  Operator op = find_operator(name->space + "::" + name->name, name->overload);
  if (op == nullptr)
    unsupported("LibTorch knows no such op", name->space == "aten" ? "" : "load the library that defines it first");

  std::map<std::string, const Json*> given;
  for (const Json& input : array_of(member(json, "inputs"), "inputs")) {
    if (!given.emplace(text_of(member(input, "name"), "name"), &member(input, "arg")).second)
      broken("an argument of '" + target + "' is given twice");
  }
  const auto& formals = op->schema().arguments();
  std::vector<bool> is_number(formals.size(), false);
  bool any_number = false, bool_number = false;
  size_t used = 0;
  for (size_t i = 0; i < formals.size(); ++i) {
    auto it = given.find(formals[i].name());
    if (it == given.end()) continue;
    ++used;
    const std::string& kind = union_of(*it->second, "argument").first;
    bool scalar = kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_complex" || kind == "as_sym_int" ||
                  kind == "as_sym_float";
    bool_number |= kind == "as_bool" && (formals[i].type()->kind() == c10::TypeKind::TensorType ||
                                         formals[i].type()->kind() == c10::TypeKind::NumberType);
    if (scalar && formals[i].type()->kind() == c10::TypeKind::TensorType) any_number = is_number[i] = true;
  }
  if (used != given.size())
    unsupported("the archive gives an argument that " + c10::toString(op->schema()) + " does not have",
                "save the archive again with PyTorch 2.11");
  if (any_number) {
    Operator other = number_variant(op, is_number);
    if (other == nullptr)
      unsupported("a number stands for a tensor, and the op has no overload that takes one",
                  "wrap the number in torch.tensor(...)");
    op = other;
  }
  const c10::FunctionSchema& schema = op->schema();
  std::vector<Value*> inputs;
  for (const c10::Argument& formal : schema.arguments()) {
    auto it = given.find(formal.name());
    if (it == given.end() && any_number) it = given.find(formals[inputs.size()].name());
    if (it != given.end()) {
      inputs.push_back(argument(scope, *it->second, formal));
    } else if (formal.default_value()) {
      inputs.push_back(constant(*formal.default_value()));
    } else {
      broken("'" + target + "' lacks its argument '" + formal.name() + "'");
    }
  }
  if (bool_number) {
    // TorchScript has no boolean Scalar. As an integer it computes the same unless the result takes its dtype from it.
    std::optional<int> dtype = schema.argumentIndexWithName("dtype");
    bool fill = schema.name() == "aten::full" && dtype;
    if (fill && inputs[*dtype]->mustBeNone()) inputs[*dtype] = constant(static_cast<int64_t>(at::kBool));
    bool typed = fill || schema.name() == "aten::masked_fill" || schema.name() == "aten::masked_fill_" ||
                 schema.name() == "aten::fill" || schema.name() == "aten::fill_" || schema.name() == "aten::full_like" ||
                 schema.name() == "aten::new_full";
    for (Value* v : inputs) {
      auto known = facts_.find(v);
      typed |= known != facts_.end() && known->second.dtype != at::kBool && schema.name() != "aten::where";
    }
    if (!typed)
      unsupported("True or False is used as a number whose type decides the result's", "use a tensor or an integer instead");
  }
  apply_autocast(schema, inputs);
  Node* n = emit(schema, inputs);
  bind_outputs(scope, json, {n->outputs().begin(), n->outputs().end()});
}

void GraphTranslator::bind_number(NameScope& scope, const Json& json, Value* value) {
  const Json& outputs = array_of(member(json, "outputs"), "outputs");
  if (outputs.size() != 1) broken("'" + target_ + "' has not one output");
  auto [kind, named] = union_of(outputs[0], "output");
  if (kind != "as_sym_int" && kind != "as_sym_float" && kind != "as_sym_bool") broken("'" + target_ + "' returns " + kind);
  auto [form, name] = union_of(named, "output");
  if (form != "as_name") return;
  auto convert = [&](const char* op) { value = graph_.insert(c10::Symbol::fromQualString(op), {value}); };
  if (kind == "as_sym_int" && value->type()->kind() != c10::TypeKind::IntType) convert("aten::Int");
  if (kind == "as_sym_float" && value->type()->kind() != c10::TypeKind::FloatType) convert("aten::Float");
  if (kind == "as_sym_bool" && value->type()->kind() != c10::TypeKind::BoolType) convert("aten::Bool");
  bind(scope, text_of(name, "name"), value);
}

/// Arithmetic on sizes and numbers: Python's operators become TorchScript's. False if the target is none of them.
bool GraphTranslator::numbers(NameScope& scope, const Json& json, const std::string& target) {
  static const std::map<std::string, const char*> table = {{"_operator.add", "aten::add"},
                                                           {"_operator.sub", "aten::sub"},
                                                           {"_operator.mul", "aten::mul"},
                                                           {"_operator.truediv", "aten::div"},
                                                           {"_operator.floordiv", "aten::floordiv"},
                                                           {"_operator.mod", "aten::remainder"},
                                                           {"_operator.pow", "aten::pow"},
                                                           {"_operator.neg", "aten::neg"},
                                                           {"_operator.eq", "aten::eq"},
                                                           {"_operator.ne", "aten::ne"},
                                                           {"_operator.lt", "aten::lt"},
                                                           {"_operator.le", "aten::le"},
                                                           {"_operator.gt", "aten::gt"},
                                                           {"_operator.ge", "aten::ge"},
                                                           {"_operator.and_", "aten::__and__"},
                                                           {"_operator.or_", "aten::__or__"},
                                                           {"_operator.lshift", "aten::__lshift__"},
                                                           {"_operator.rshift", "aten::__rshift__"},
                                                           {"math.trunc", "aten::Int"},
                                                           {"torch.sym_int", "aten::Int"},
                                                           {"torch.sym_float", "aten::Float"},
                                                           {"torch.sym_not", "aten::__not__"},
                                                           {"torch.sym_max", "prim::max"},
                                                           {"torch.sym_min", "prim::min"},
                                                           {"torch._sym_sqrt", "aten::sqrt"},
                                                           {"torch.sym_sqrt", "aten::sqrt"},
                                                           {"torch.ops.aten.sym_size.int", "aten::size"},
                                                           {"torch.ops.aten.sym_stride.int", "aten::stride"},
                                                           {"torch.ops.aten.sym_numel.default", "aten::numel"},
                                                           {"torch.ops.aten.sym_storage_offset.default", "aten::storage_offset"},
                                                           {"torch.ops.aten.item.default", "aten::item"},
                                                           {"torch.ops.aten._local_scalar_dense.default", "aten::item"}};
  auto it = table.find(target);
  if (it == table.end()) {
    if (target == "_operator.pos") {
      bind_number(scope, json,
                  argument(scope, member(member(json, "inputs").at(0), "arg"), c10::Argument("value", c10::NumberType::get())));
      return true;
    }
    return false;
  }
  std::vector<torch::jit::NamedValue> inputs;
  for (const Json& input : array_of(member(json, "inputs"), "inputs")) {
    const Json& arg = member(input, "arg");
    const std::string& kind = union_of(arg, "argument").first;
    bool tensor = kind == "as_tensor";
    bool flag = kind == "as_bool" || kind == "as_sym_bool";
    inputs.emplace_back(argument(scope, arg,
                                 c10::Argument("value", tensor ? c10::TypePtr(c10::TensorType::get())
                                                        : flag ? c10::TypePtr(c10::BoolType::get())
                                                               : c10::TypePtr(c10::NumberType::get()))));
  }
  bind_number(scope, json, graph_.insert(c10::Symbol::fromQualString(it->second), inputs));
  return true;
}

void GraphTranslator::bind_outputs(NameScope& scope, const Json& json, const std::vector<Value*>& values) {
  const Json& outputs = array_of(member(json, "outputs"), "outputs");
  size_t next = 0;
  for (const Json& out : outputs) {
    auto [kind, value] = union_of(out, "output");
    if (next >= values.size()) {
      if (kind == "as_none") continue;
      broken("'" + target_ + "' has more outputs than the op returns");
    }
    Value* v = values[next++];
    if (kind == "as_none" || v == nullptr) continue;
    if (kind == "as_tensor") {
      bind(scope, text_of(member(value, "name"), "name"), v);
    } else if (kind == "as_optional_tensor") {
      auto [form, inner] = union_of(value, "output");
      if (form == "as_tensor") bind(scope, text_of(member(inner, "name"), "name"), v);
    } else if (kind == "as_tensors") {
      const Json& names = array_of(value, "as_tensors");
      if (v->type()->kind() == c10::TypeKind::ListType) {
        Node* unpack = graph_.insertNode(graph_.createListUnpack(v, names.size()));
        for (size_t i = 0; i < names.size(); ++i) bind(scope, text_of(member(names[i], "name"), "name"), unpack->output(i));
      } else {
        // A region with one output list: its values come one by one.
        for (size_t i = 0; i < names.size(); ++i) {
          if (i > 0 && next >= values.size()) broken("'" + target_ + "' has more outputs than its region returns");
          Value* element = i == 0 ? v : values[next++];
          if (element != nullptr) bind(scope, text_of(member(names[i], "name"), "name"), element);
        }
      }
    } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      auto [form, name] = union_of(value, "output");
      if (form == "as_name") bind(scope, text_of(name, "name"), v);
    } else {
      unsupported("it returns " + kind + ", which is not read");
    }
  }
}

std::vector<Value*> GraphTranslator::inlined(NameScope& scope, const Json& graph_argument, const Json& inputs, size_t first) {
  auto [kind, body] = union_of(graph_argument, "argument");
  if (kind != "as_graph") broken("'" + target_ + "': expected a graph, found " + kind);
  NameScope inner(object_of(member(body, "graph"), "graph"));
  const Json& formals = array_of(member(inner.graph, "inputs"), "inputs");
  if (inputs.size() < first || formals.size() != inputs.size() - first)
    broken("'" + target_ + "': the region takes another number of operands than it is given");
  for (size_t i = 0; i < formals.size(); ++i) {
    auto [form, named] = union_of(formals[i], "input");
    if (form != "as_tensor" && form != "as_sym_int" && form != "as_sym_float" && form != "as_sym_bool") continue;
    const Json* name = find_member(named, form == "as_tensor" ? "name" : "as_name");
    if (name == nullptr) continue;
    bool tensor = form == "as_tensor", flag = form == "as_sym_bool";
    Value* v = argument(scope, member(inputs[first + i], "arg"),
                        c10::Argument("operand", tensor ? c10::TypePtr(c10::TensorType::get())
                                                 : flag ? c10::TypePtr(c10::BoolType::get())
                                                        : c10::TypePtr(c10::NumberType::get())));
    bind(inner, text_of(*name, "name"), v);
  }
  nodes(inner);
  std::vector<Value*> results;
  for (const Json& out : array_of(member(inner.graph, "outputs"), "outputs")) results.push_back(output(inner, out));
  return results;
}

void GraphTranslator::higher_order(NameScope& scope, const Json& json, const std::string& name) {
  const std::string target = target_;
  const NodeLocation location = here_;
  const Json& inputs = array_of(member(json, "inputs"), "inputs");
  auto arg = [&](size_t i) -> const Json& {
    if (i >= inputs.size()) broken("'" + target + "' lacks operands");
    return member(inputs[i], "arg");
  };
  auto finish = [&](const std::vector<Value*>& results) {
    target_ = target;
    here_ = location;
    bind_outputs(scope, json, results);
  };
  if (name == "wrap_with_set_grad_enabled") {
    bool enabled = boolean_of(union_of(arg(0), "argument").second, "grad mode");
    Value* outer = graph_.insert(c10::Symbol::aten("is_grad_enabled"), {});
    auto set = [&](Value* mode) { emit(find_operator("aten::set_grad_enabled", "")->schema(), {mode}); };
    set(constant(enabled));
    std::vector<Value*> results = inlined(scope, arg(1), inputs, 2);
    set(outer);
    finish(results);
  } else if (name == "wrap_with_autocast") {
    const std::string& device = text_of(union_of(arg(0), "argument").second, "autocast device");
    if (device != "cpu" && device != "cuda") unsupported("autocast for '" + device + "' is not read: expected cpu or cuda");
    Autocast region{device == "cpu" ? at::kCPU : at::kCUDA, device == "cpu" ? at::kBFloat16 : at::kHalf, true, true};
    auto [dtype_kind, dtype] = union_of(arg(1), "argument");
    if (dtype_kind == "as_scalar_type") region.dtype = scalar_type_of(dtype);
    region.enabled = boolean_of(union_of(arg(2), "argument").second, "autocast mode");
    auto [cache_kind, cache] = union_of(arg(3), "argument");
    if (cache_kind == "as_bool") region.cache = boolean_of(cache, "autocast cache");
    autocasts_.push_back(region);
    std::vector<Value*> results = inlined(scope, arg(4), inputs, 5);
    autocasts_.pop_back();
    if (autocasts_.empty()) cast_cache_.clear();
    finish(results);
  } else if (name == "tag_activation_checkpoint" || name == "wrap") {
    // User checkpoints say what to recompute; the planner decides that anew, and the values are the same.
    size_t positional = 0;
    while (positional < inputs.size() && text_of(member(inputs[positional], "name"), "name").empty()) ++positional;
    Json operands = Json::array();
    for (size_t i = 0; i < positional; ++i) operands.push_back(inputs[i]);
    finish(inlined(scope, arg(0), operands, 1));
  } else {
    unsupported("this higher-order op is not read",
                "write the region without it (control flow on data cannot be planned ahead of time)");
  }
}

Value* GraphTranslator::output(NameScope& scope, const Json& json) {
  auto [kind, value] = union_of(json, "output");
  if (kind == "as_tensor") return lookup(scope, text_of(member(value, "name"), "name"));
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return sym(scope, value);
  if (kind == "as_none" || kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_string") return nullptr;
  fail(Exit::kUnsupported, "an output of kind " + kind + " of the exported program is not read",
       "return tensors, numbers, strings or None");
}

}  // namespace memscale::import

// Arguments of exported nodes → TorchScript values of the type that the op's schema wants, and autocast's casts on them.
// Needs LibTorch. Appends to the graph only.
#include "compiler/import/pt2_graph.h"
#include "compiler/import/pt2_types.h"

namespace memscale::import {

using torch::jit::Value;

namespace {

c10::TypePtr without_optional(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType) return type->expectRef<c10::OptionalType>().getElementType();
  return type;
}

}  // namespace

/// An integer, float or bool of the schema's type; Python's own conversions (int to float, bool to int) are made here.
Value* GraphTranslator::number(NameScope& scope, const std::string& kind, const Json& value, const c10::TypePtr& formal) {
  using c10::TypeKind;
  TypeKind wanted = formal->kind();
  if (kind == "as_complex") {
    if (wanted != TypeKind::NumberType && wanted != TypeKind::ComplexType)
      unsupported("a complex number stands for " + formal->repr_str());
    return constant(c10::complex<double>(real_of(member(value, "real"), "real"), real_of(member(value, "imag"), "imag")));
  }
  if (kind == "as_bool") {
    bool flag = boolean_of(value, "as_bool");
    if (wanted == TypeKind::BoolType) return constant(flag);
    if (wanted == TypeKind::FloatType) return constant(flag ? 1.0 : 0.0);
    if (wanted == TypeKind::IntType || wanted == TypeKind::NumberType) return constant(static_cast<int64_t>(flag));
  } else if (kind == "as_int") {
    int64_t number = integer_of(value, "as_int");
    if (wanted == TypeKind::FloatType) return constant(static_cast<double>(number));
    if (wanted == TypeKind::IntType || wanted == TypeKind::NumberType) return constant(number);
    if (wanted == TypeKind::BoolType && (number == 0 || number == 1)) return constant(number == 1);
  } else if (kind == "as_float") {
    double number = real_of(value, "as_float");
    if (wanted == TypeKind::FloatType || wanted == TypeKind::NumberType) return constant(number);
  } else {
    Value* v = sym(scope, value);
    TypeKind found = v->type()->kind();
    if (found == wanted || wanted == TypeKind::NumberType) return v;
    if (wanted == TypeKind::FloatType) return graph_.insert(c10::Symbol::aten("Float"), {v});
    if (wanted == TypeKind::IntType && found == TypeKind::BoolType) return graph_.insert(c10::Symbol::aten("Int"), {v});
  }
  unsupported("an argument of kind " + kind + " stands for " + formal->repr_str());
}

Value* GraphTranslator::sym(NameScope& scope, const Json& json) {
  auto [form, value] = union_of(json, "a number");
  if (form == "as_name") return lookup(scope, text_of(value, "name"));
  if (form == "as_int") return constant(integer_of(value, "as_int"));
  if (form == "as_float") return constant(real_of(value, "as_float"));
  if (form == "as_bool") return constant(boolean_of(value, "as_bool"));
  broken("a number of kind " + form);
}

Value* GraphTranslator::number_list(NameScope& scope, const Json& list, const c10::TypePtr& element) {
  bool constant_list = true;
  for (const Json& entry : list) constant_list &= !entry.is_object() || find_member(entry, "as_name") == nullptr;
  auto plain = [](const Json& entry) -> const Json& { return entry.is_object() ? union_of(entry, "list entry").second : entry; };
  if (constant_list) {
    switch (element->kind()) {
      case c10::TypeKind::IntType: {
        c10::List<int64_t> out;
        for (const Json& e : list) out.push_back(integer_of(plain(e), "list entry"));
        return constant(out);
      }
      case c10::TypeKind::FloatType: {
        c10::List<double> out;
        for (const Json& e : list) out.push_back(real_of(plain(e), "list entry"));
        return constant(out);
      }
      case c10::TypeKind::BoolType: {
        c10::List<bool> out;
        for (const Json& e : list) out.push_back(boolean_of(plain(e), "list entry"));
        return constant(out);
      }
      case c10::TypeKind::StringType: {
        c10::List<std::string> out;
        for (const Json& e : list) out.push_back(text_of(plain(e), "list entry"));
        return constant(out);
      }
      default:
        unsupported("a list of numbers stands for a list of " + element->repr_str());
    }
  }
  std::vector<Value*> values;
  for (const Json& entry : list) {
    Value* v = sym(scope, entry);
    if (v->type()->kind() != element->kind()) unsupported("a list of " + element->repr_str() + " holds " + v->type()->repr_str());
    values.push_back(v);
  }
  return graph_.insertNode(graph_.createList(element, values))->output();
}

Value* GraphTranslator::tensor_list(NameScope& scope, const Json& list, bool optional_elements) {
  std::vector<Value*> values;
  for (const Json& entry : list) {
    const Json* named = &entry;
    if (find_member(entry, "name") == nullptr) {
      auto [kind, value] = union_of(entry, "list entry");
      if (kind == "as_none") {
        if (!optional_elements) broken("'" + target_ + "' is given None inside a list of tensors");
        values.push_back(constant(c10::IValue()));
        continue;
      }
      named = &value;
    }
    values.push_back(lookup(scope, text_of(member(*named, "name"), "name")));
    if (values.back()->type()->kind() != c10::TypeKind::TensorType)
      broken("'" + target_ + "' is given a list with something that is no tensor");
  }
  c10::TypePtr element = optional_elements ? c10::TypePtr(c10::OptionalType::ofTensor()) : c10::TypePtr(c10::TensorType::get());
  return graph_.insertNode(graph_.createList(element, values))->output();
}

Value* GraphTranslator::argument(NameScope& scope, const Json& json, const c10::Argument& formal) {
  using c10::TypeKind;
  auto [kind, value] = union_of(json, "argument");
  const bool optional = formal.type()->kind() == TypeKind::OptionalType;
  const c10::TypePtr type = without_optional(formal.type());
  auto mismatch = [&]() {
    unsupported("argument '" + formal.name() + "' is given as " + kind + ", the op wants " + formal.type()->repr_str());
  };
  auto none = [&] {
    if (!optional) mismatch();
    return constant(c10::IValue());
  };
  if (kind == "as_none") return none();
  if (kind == "as_tensor") {
    Value* v = lookup(scope, text_of(member(value, "name"), "name"));
    if (type->kind() != TypeKind::TensorType || v->type()->kind() != TypeKind::TensorType) mismatch();
    return v;
  }
  if (kind == "as_optional_tensor") {
    auto [form, inner] = union_of(value, "as_optional_tensor");
    if (form == "as_none") return none();
    if (type->kind() != TypeKind::TensorType) mismatch();
    return lookup(scope, text_of(member(inner, "name"), "name"));
  }
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    if (type->kind() != TypeKind::ListType) mismatch();
    c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    bool optional_elements = element->kind() == TypeKind::OptionalType;
    if (without_optional(element)->kind() != TypeKind::TensorType) {
      // An empty list has no kind of its own.
      if (!array_of(value, kind.c_str()).empty()) mismatch();
      return number_list(scope, value, element);
    }
    return tensor_list(scope, array_of(value, kind.c_str()), optional_elements);
  }
  if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools" || kind == "as_strings" || kind == "as_sym_ints" ||
      kind == "as_sym_floats" || kind == "as_sym_bools") {
    if (type->kind() != TypeKind::ListType) mismatch();
    c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    if (array_of(value, kind.c_str()).empty() && without_optional(element)->kind() == TypeKind::TensorType) {
      return tensor_list(scope, value, element->kind() == TypeKind::OptionalType);
    }
    return number_list(scope, value, element);
  }
  if (kind == "as_string") {
    if (type->kind() != TypeKind::StringType) mismatch();
    return constant(text_of(value, "as_string"));
  }
  auto code = [&](int64_t number) {
    if (type->kind() != TypeKind::IntType) mismatch();
    return constant(number);
  };
  if (kind == "as_scalar_type") return code(static_cast<int64_t>(scalar_type_of(value)));
  if (kind == "as_layout") return code(static_cast<int64_t>(layout_of(value)));
  if (kind == "as_memory_format") return code(static_cast<int64_t>(memory_format_of(value)));
  if (kind == "as_device") {
    if (type->kind() != TypeKind::DeviceObjType) mismatch();
    return constant(device_of(value));
  }
  if (kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_complex" || kind == "as_sym_int" ||
      kind == "as_sym_float" || kind == "as_sym_bool") {
    if (type->kind() == TypeKind::ListType) {
      // One number for a list of fixed length stands for all of its entries.
      c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
      int32_t count = formal.N().value_or(1);
      if (count < 1 || count > 64) mismatch();
      return number_list(scope, Json(static_cast<size_t>(count), value), element);
    }
    return number(scope, kind, value, type);
  }
  unsupported("argument '" + formal.name() + "' is of kind " + kind + ", which is not read");
}

bool GraphTranslator::eligible(Value* value, const Autocast& region) const {
  auto it = facts_.find(value);
  if (it == facts_.end()) return false;
  const TensorFacts& f = it->second;
  return f.device == (region.device == at::kCPU ? "cpu" : "cuda") && c10::isFloatingType(f.dtype) && f.dtype != at::kDouble;
}

Value* GraphTranslator::cast(Value* value, at::ScalarType dtype, const Autocast& region) {
  if (!eligible(value, region) || facts_.at(value).dtype == dtype) return value;
  TensorFacts facts = facts_.at(value);
  bool cached = region.cache && dtype == region.dtype && facts.dtype == at::kFloat && leaves_.count(value) > 0;
  if (auto it = cast_cache_.find(value); cached && it != cast_cache_.end()) return it->second;
  const c10::FunctionSchema& to = find_operator("aten::to", "dtype")->schema();
  Value* made =
      emit(to, {value, constant(static_cast<int64_t>(dtype)), constant(false), constant(false), constant(c10::IValue())})
          ->output();
  facts.dtype = dtype;
  facts_.emplace(made, facts);
  if (cached) cast_cache_.emplace(value, made);
  return made;
}

void GraphTranslator::apply_autocast(const c10::FunctionSchema& schema, std::vector<Value*>& inputs) {
  // The innermost region of each device type holds.
  for (at::DeviceType device : {at::kCPU, at::kCUDA}) {
    const Autocast* region = nullptr;
    for (const Autocast& a : autocasts_) {
      if (a.device == device) region = &a;
    }
    if (region == nullptr || !region->enabled) continue;
    auto elements = [](Value* v) -> std::vector<Value*> {
      if (v->type()->kind() == c10::TypeKind::TensorType) return {v};
      if (v->node()->kind() == torch::jit::prim::ListConstruct) return {v->node()->inputs().begin(), v->node()->inputs().end()};
      return {};
    };
    bool any = false, elsewhere = false;
    for (Value* v : inputs) {
      for (Value* e : elements(v)) {
        any |= eligible(e, *region);
        auto facts = facts_.find(e);
        if (facts == facts_.end() || !c10::isFloatingType(facts->second.dtype)) continue;
        elsewhere |= facts->second.device != (device == at::kCPU ? "cpu" : "cuda");
        if (facts->second.device == "meta") {
          unsupported("autocast does not act on the meta device, so this program does not hold what the model would compute",
                      "export the model from the device it trains on");
        }
      }
    }
    if (elsewhere && !any) idle_autocasts_.insert(device == at::kCPU ? "cpu" : "cuda");
    if (!any) continue;
    at::ScalarType to = at::kFloat;
    switch (cast_policy(schema, device)) {
      case CastPolicy::kNone:
        continue;
      case CastPolicy::kRefuse:
        unsupported("what autocast does inside this op is not known ahead of time",
                    "cast its operands yourself, or leave it outside autocast");
      case CastPolicy::kFloatDtype: {
        std::optional<int> dtype = schema.argumentIndexWithName("dtype");
        if (dtype && !inputs.empty() && eligible(inputs[0], *region) && inputs[*dtype]->mustBeNone()) {
          inputs[*dtype] = constant(static_cast<int64_t>(at::kFloat));
        }
        continue;
      }
      case CastPolicy::kLower:
        to = region->dtype;
        break;
      case CastPolicy::kFloat:
        break;
      case CastPolicy::kPromote:
        to = region->dtype;
        for (Value* v : inputs) {
          for (Value* e : elements(v)) {
            if (eligible(e, *region) && facts_.at(e).dtype != to) to = at::kFloat;
          }
        }
        break;
    }
    for (Value*& v : inputs) {
      if (v->type()->kind() == c10::TypeKind::TensorType) {
        v = cast(v, to, *region);
      } else if (v->node()->kind() == torch::jit::prim::ListConstruct) {
        std::vector<Value*> made;
        for (Value* e : v->node()->inputs()) made.push_back(cast(e, to, *region));
        c10::TypePtr element = v->type()->expectRef<c10::ListType>().getElementType();
        v = graph_.insertNode(graph_.createList(element, made))->output();
      }
    }
  }
}

}  // namespace memscale::import

// Binds a plan to the dispatcher: finds schemas, checks argument kinds against them, builds constants, follows aliases.
// Needs a checked plan; destroys nothing.
#include "runtime/core/program.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "runtime/core/aliases.h"

namespace memscale::runtime {
namespace {

using fb::ArgKind;

[[noreturn]] void misfit(const std::string& where, const std::string& what) {
  throw PlanError(Fault::kVersion, "memscale: " + where + ": " + what +
                                       ". The plan was made for another version of the operator; compile the model again with "
                                       "the torch that runs it.");
}

/// Strips Optional; `optional` tells whether None is allowed.
c10::TypePtr strip_optional(const c10::TypePtr& type, bool* optional) {
  if (const auto opt = type->cast<c10::OptionalType>()) {
    *optional = true;
    return opt->getElementType();
  }
  *optional = false;
  return type;
}

std::string kind_name(const fb::ArgT& arg) { return fb::EnumNameArgKind(arg.kind); }

c10::List<int64_t> int_list(const fb::ArgT& arg) {
  c10::List<int64_t> list;
  list.reserve(arg.ints.size());
  for (int64_t v : arg.ints) list.push_back(v);
  return list;
}

/// The constant for an argument of `type` (Optional stripped). False if the kind does not fit.
bool make_constant(const fb::ArgT& arg, const c10::TypePtr& type, c10::IValue* out) {
  switch (type->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (arg.kind != ArgKind::Int) return false;
      *out = arg.i;
      return true;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      if (arg.kind == ArgKind::Float)
        *out = arg.f;
      else if (arg.kind == ArgKind::Int)
        *out = static_cast<double>(arg.i);
      else
        return false;
      return true;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      if (arg.kind != ArgKind::Bool) return false;
      *out = arg.i != 0;
      return true;
    case c10::TypeKind::NumberType:
      switch (arg.kind) {
        case ArgKind::Int:
          *out = arg.i;
          return true;
        case ArgKind::Float:
          *out = arg.f;
          return true;
        case ArgKind::Bool:
          *out = arg.i != 0;
          return true;
        case ArgKind::Complex:
          *out = c10::complex<double>(arg.f, arg.g);
          return true;
        default:
          return false;
      }
    case c10::TypeKind::ComplexType:
      if (arg.kind != ArgKind::Complex) return false;
      *out = c10::complex<double>(arg.f, arg.g);
      return true;
    case c10::TypeKind::StringType:
      if (arg.kind != ArgKind::String) return false;
      *out = arg.s;
      return true;
    case c10::TypeKind::ListType: {
      // An empty list has no kind of its own: a writer may record it as any of the three.
      const bool empty = (arg.kind == ArgKind::Ints || arg.kind == ArgKind::Bools)
                             ? arg.ints.empty()
                             : (arg.kind == ArgKind::Floats && arg.floats.empty());
      switch (type->castRaw<c10::ListType>()->getElementType()->kind()) {
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
          if (arg.kind != ArgKind::Ints && !empty) return false;
          *out = int_list(arg);
          return true;
        case c10::TypeKind::FloatType: {
          if (arg.kind != ArgKind::Floats && !empty) return false;
          c10::List<double> list;
          for (double v : arg.floats) list.push_back(v);
          *out = std::move(list);
          return true;
        }
        case c10::TypeKind::BoolType: {
          if (arg.kind != ArgKind::Bools && !empty) return false;
          c10::List<bool> list;
          for (int64_t v : arg.ints) list.push_back(v != 0);
          *out = std::move(list);
          return true;
        }
        case c10::TypeKind::NumberType: {
          c10::impl::GenericList list(c10::NumberType::get());
          if (arg.kind == ArgKind::Floats)
            for (double v : arg.floats) list.push_back(v);
          else if (arg.kind == ArgKind::Ints)
            for (int64_t v : arg.ints) list.push_back(v);
          else
            return false;
          *out = std::move(list);
          return true;
        }
        default:
          return false;
      }
    }
    default:
      return false;
  }
}

/// A plan may come from anywhere: it computes on tensors, it does not touch files, processes or other plans.
bool is_refused(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  for (const char* space : {"memscale::", "profiler::", "c10d::", "_c10d_functional::", "rpc::", "prim::"})
    if (name.rfind(space, 0) == 0) return true;
  for (const auto& a : schema.arguments())
    if (a.name() == "filename" || a.name() == "path") return true;
  return false;
}

class Binder {
 public:
  explicit Binder(const fb::PlanT& plan) : plan_(plan) {
    for (const auto& name : plan.ops) {
      const auto handle = c10::Dispatcher::singleton().findSchema({name->name, name->overload});
      if (!handle.has_value())
        throw PlanError(Fault::kVersion, "memscale: the plan calls '" + name->name + (name->overload.empty() ? "" : ".") +
                                             name->overload + "', which this process does not have (plan made with torch " +
                                             plan.torch_version +
                                             "). Load the library that registers it, or compile the model "
                                             "again with this torch.");
      if (is_refused(handle->schema()))
        throw PlanError(Fault::kBroken, "memscale: the plan calls '" + name->name +
                                            "', which reaches beyond tensors: plans may not. "
                                            "The file is damaged or hostile.");
      handles_.push_back(*handle);
    }
  }

  Program run() {
    program_.forward.reserve(plan_.forward.size());
    for (const auto& instr : plan_.forward) program_.forward.push_back(instruction(*instr));
    program_.backward.reserve(plan_.backward.size());
    for (const auto& instr : plan_.backward) {
      program_.backward.push_back(instruction(*instr));
      program_.recomputes |= instr->recompute;
    }
    for (const auto& s : plan_.segments) {
      Segment segment;
      segment.name = s->name;
      segment.begin = s->begin;
      segment.end = s->end;
      segment.frees = s->frees;
      for (const auto& g : s->gradients) segment.gradients.push_back({g->argument, g->reg, false});
      program_.segments.push_back(std::move(segment));
    }
    analyse_lifetimes(plan_, program_);
    analyse_aliases(plan_, program_);
    return std::move(program_);
  }

 private:
  Instruction instruction(const fb::InstrT& in) {
    Instruction out(handles_[in.op]);
    const c10::FunctionSchema& schema = out.op.schema();
    out.frees = in.frees;
    out.rng_save = in.rng_save;
    out.rng_replay = in.rng_replay;
    out.recompute = in.recompute;
    out.location = in.location;
    const std::string where = describe_instruction(plan_, out);
    if (schema.arguments().size() != in.args.size())
      misfit(where, "the schema has " + std::to_string(schema.arguments().size()) + " arguments, the plan gives " +
                        std::to_string(in.args.size()));
    for (size_t i = 0; i < in.args.size(); ++i) out.args.push_back(argument(*in.args[i], schema.arguments()[i], where, out));
    if (schema.returns().size() != in.results.size())
      misfit(where, "the schema has " + std::to_string(schema.returns().size()) + " results, the plan takes " +
                        std::to_string(in.results.size()));
    for (size_t i = 0; i < in.results.size(); ++i) {
      const auto kind = schema.returns()[i].type()->kind();
      const bool list =
          kind == c10::TypeKind::ListType &&
          schema.returns()[i].type()->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
      const auto expected = kind == c10::TypeKind::TensorType ? fb::ResultKind::Tensor
                            : list                            ? fb::ResultKind::TensorList
                                                              : fb::ResultKind::Other;
      if (in.results[i]->kind != expected)
        misfit(where, "result " + std::to_string(i) + " is a " + schema.returns()[i].type()->str() + ", the plan takes a " +
                          fb::EnumNameResultKind(in.results[i]->kind));
      out.results.push_back(*in.results[i]);
    }
    for (const auto& meta : in.first_layout) out.layouts.push_back(*meta);
    return out;
  }

  int32_t constant(c10::IValue value) {
    program_.constants.push_back(std::move(value));
    return static_cast<int32_t>(program_.constants.size() - 1);
  }

  ArgSource argument(const fb::ArgT& arg, const c10::Argument& schema, const std::string& where, Instruction& instr) {
    bool optional = false;
    const c10::TypePtr type = strip_optional(schema.type(), &optional);
    const auto wrong = [&]() {
      misfit(where, "argument '" + schema.name() + "' is a " + schema.type()->str() + ", the plan gives a " + kind_name(arg));
    };
    if (type->kind() == c10::TypeKind::GeneratorType) {
      if (arg.kind != ArgKind::None) wrong();
      instr.takes_generator = true;
      return {ArgSource::kGenerator, -1};
    }
    if (type->kind() == c10::TypeKind::TensorType) {
      if (arg.kind == ArgKind::Reg) return {ArgSource::kTensor, static_cast<int32_t>(arg.i)};
      if (arg.kind != ArgKind::None) wrong();
      return {ArgSource::kConstant, constant(optional ? c10::IValue() : c10::IValue(at::Tensor()))};
    }
    if (arg.kind == ArgKind::None) {
      if (!optional) wrong();
      return {ArgSource::kConstant, constant(c10::IValue())};
    }
    if (type->kind() == c10::TypeKind::DeviceObjType) {
      if (arg.kind != ArgKind::Device) wrong();
      if (arg.i == static_cast<int64_t>(fb::Place::Target)) return {ArgSource::kTargetDevice, -1};
      instr.on_host = true;
      return {ArgSource::kConstant, constant(c10::Device(c10::DeviceType::CPU))};
    }
    if (type->kind() == c10::TypeKind::ListType) {
      bool optional_elements = false;
      const auto element = strip_optional(type->castRaw<c10::ListType>()->getElementType(), &optional_elements);
      if (element->kind() == c10::TypeKind::TensorType) {
        if (arg.kind != ArgKind::RegList) wrong();
        if (!optional_elements && std::count(arg.regs.begin(), arg.regs.end(), -1) > 0) wrong();
        program_.register_lists.push_back(arg.regs);
        return {optional_elements ? ArgSource::kOptionalTensorList : ArgSource::kTensorList,
                static_cast<int32_t>(program_.register_lists.size() - 1)};
      }
    }
    c10::IValue value;
    if (!make_constant(arg, type, &value)) wrong();
    return {ArgSource::kConstant, constant(std::move(value))};
  }

  const fb::PlanT& plan_;
  std::vector<c10::OperatorHandle> handles_;
  Program program_;
};

}  // namespace

at::ScalarType scalar_type_of(const std::string& dtype) {
  static const std::pair<const char*, at::ScalarType> kTypes[] = {{"f32", at::kFloat},
                                                                  {"f64", at::kDouble},
                                                                  {"f16", at::kHalf},
                                                                  {"bf16", at::kBFloat16},
                                                                  {"i64", at::kLong},
                                                                  {"i32", at::kInt},
                                                                  {"i16", at::kShort},
                                                                  {"i8", at::kChar},
                                                                  {"u8", at::kByte},
                                                                  {"bool", at::kBool},
                                                                  {"c64", at::kComplexFloat},
                                                                  {"c128", at::kComplexDouble},
                                                                  {"c32", at::kComplexHalf},
                                                                  {"f8e4m3fn", at::kFloat8_e4m3fn},
                                                                  {"f8e5m2", at::kFloat8_e5m2},
                                                                  {"u16", at::kUInt16},
                                                                  {"u32", at::kUInt32},
                                                                  {"u64", at::kUInt64}};
  for (const auto& [name, type] : kTypes)
    if (dtype == name) return type;
  throw PlanError(Fault::kBroken, "memscale: broken plan: unknown dtype '" + dtype + "'");
}

namespace {
template <class Sizes, class Strides>
std::string describe_layout(const std::string& dtype, const Sizes& sizes, const Strides& strides, int64_t offset) {
  std::ostringstream out;
  out << dtype << "[";
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? "x" : "") << sizes[i];
  out << "] strides (";
  for (size_t i = 0; i < strides.size(); ++i) out << (i ? "," : "") << strides[i];
  out << ")";
  if (offset != 0) out << " offset " << offset;
  return out.str();
}
}  // namespace

std::string describe(const fb::TensorMetaT& meta) { return describe_layout(meta.dtype, meta.sizes, meta.strides, meta.offset); }

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  if (tensor.layout() != at::kStrided) return std::string("a tensor of layout ") + c10::str(tensor.layout());
  return describe_layout(c10::toString(tensor.scalar_type()), tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

bool same_layout(const at::Tensor& tensor, const fb::TensorMetaT& meta, at::ScalarType dtype, bool with_offset) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.scalar_type() != dtype) return false;
  const auto sizes = tensor.sizes();
  if (!sizes.equals(meta.sizes)) return false;
  if (with_offset && tensor.storage_offset() != meta.offset) return false;
  if (tensor.numel() == 0) return true;
  const auto strides = tensor.strides();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && strides[d] != meta.strides[d]) return false;
  return true;
}

std::string describe_instruction(const fb::PlanT& plan, const Instruction& instruction) {
  std::string text = c10::toString(instruction.op.operator_name());
  if (instruction.location < plan.locations.size() && !plan.locations[instruction.location].empty())
    text += " at " + plan.locations[instruction.location];
  return text;
}

Program bind_program(const fb::PlanT& plan) { return Binder(plan).run(); }

}  // namespace memscale::runtime

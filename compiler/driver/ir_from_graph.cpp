// Translates capture::Graph into the memscale dialect, call by call. Needs a graph in eager's order; destroys nothing.
#include "compiler/driver/ir_from_graph.h"

#include <unordered_map>

#include "ir/Memscale.h"
#include "mlir/IR/Verifier.h"

namespace memscale::driver {
namespace {

using mlir::Attribute;
using mlir::Value;

class Translator {
 public:
  Translator(mlir::MLIRContext& context, const capture::Graph& graph) : graph_(graph), builder_(&context) {
    context.loadDialect<ir::MemscaleDialect>();
  }

  mlir::OwningOpRef<mlir::ModuleOp> run() {
    const auto unknown = builder_.getUnknownLoc();
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(unknown);
    builder_.setInsertionPointToEnd(module->getBody());
    step_ = make_step(unknown);
    if (!step_) return nullptr;
    builder_.setInsertionPointToEnd(&step_.getBlock());
    for (size_t i = 0; i < graph_.calls.size(); ++i) {
      if (i == graph_.backward_begin && !make_border()) return nullptr;
      if (!make_call(i)) return nullptr;
    }
    if (graph_.backward_begin >= graph_.calls.size() && !make_border()) return nullptr;
    if (!make_return() || mlir::failed(mlir::verify(*module))) return nullptr;
    return module;
  }

 private:
  bool fault(mlir::Location loc, const std::string& what) {
    mlir::emitError(loc) << "the captured graph contradicts itself: " << what << ". This is a fault of capture.";
    return false;
  }

  mlir::Type type_of(capture::ValueId id) {
    const capture::Value& v = graph_.values[id];
    return ir::StridedTensorType::get(builder_.getContext(), v.dtype, v.sizes, v.strides, v.offset,
                                      v.place == capture::Place::kHost);
  }

  static ir::Role role_of(capture::Role role) {
    switch (role) {
      case capture::Role::kParameter:
        return ir::Role::Parameter;
      case capture::Role::kBuffer:
        return ir::Role::Buffer;
      case capture::Role::kInput:
        return ir::Role::Input;
      case capture::Role::kTangent:
        return ir::Role::Tangent;
      case capture::Role::kConstant:
        return ir::Role::Constant;
    }
    return ir::Role::Constant;
  }

  ir::StepOp make_step(mlir::Location loc) {
    std::vector<Attribute> infos;
    std::vector<mlir::Type> types;
    std::unordered_map<capture::StorageId, int64_t> first;  // storage → its first argument
    for (size_t i = 0; i < graph_.arguments.size(); ++i) {
      const capture::Argument& a = graph_.arguments[i];
      const capture::StorageId storage = graph_.values[a.value].storage;
      const int64_t shared = first.try_emplace(storage, static_cast<int64_t>(i)).first->second;
      std::vector<Attribute> aliases;
      for (const std::string& alias : a.aliases) aliases.push_back(builder_.getStringAttr(alias));
      const bool constant = a.role == capture::Role::kConstant;
      infos.push_back(ir::ArgumentAttr::get(
          builder_.getContext(), role_of(a.role), builder_.getStringAttr(a.name), graph_.storages[storage].bytes, shared,
          a.requires_grad, a.persistent, a.wrapped_number, aliases.empty() ? mlir::ArrayAttr() : builder_.getArrayAttr(aliases),
          constant ? builder_.getStringAttr(a.data) : mlir::StringAttr()));
      types.push_back(type_of(a.value));
      argument_of_[a.value] = static_cast<int32_t>(i);
    }
    mlir::OperationState state(loc, ir::StepOp::getOperationName());
    const auto text = [&](const char* name, const std::string& value) {
      if (!value.empty()) state.addAttribute(name, builder_.getStringAttr(value));
    };
    text("sym_name", "step");
    text("target", graph_.target);
    text("input_structure", graph_.input_structure);
    text("output_structure", graph_.output_structure);
    state.addAttribute("phase", ir::PhaseAttr::get(builder_.getContext(), ir::Phase::Captured));
    state.addAttribute("arguments", builder_.getArrayAttr(infos));
    std::vector<mlir::NamedAttribute> guards;
    for (const auto& [name, value] : graph_.guards) guards.push_back(builder_.getNamedAttr(name, builder_.getStringAttr(value)));
    if (!guards.empty()) state.addAttribute("guards", builder_.getDictionaryAttr(guards));
    state.addRegion()->emplaceBlock();
    auto step = mlir::cast<ir::StepOp>(builder_.create(state));
    for (size_t i = 0; i < graph_.arguments.size(); ++i)
      define(graph_.arguments[i].value, step.getBlock().addArgument(types[i], loc));
    return step;
  }

  void define(capture::ValueId id, Value value) {
    values_[id] = value;
    known_.insert({graph_.values[id].storage, value});
  }

  Value value_of(capture::ValueId id) {
    const auto found = values_.find(id);
    return found == values_.end() ? Value() : found->second;
  }

  Attribute ref(capture::ValueId id, std::vector<capture::ValueId>& operands) {
    operands.push_back(id);
    return ir::RefAttr::get(builder_.getContext(), static_cast<int32_t>(operands.size()) - 1);
  }

  Attribute translate(const capture::Arg& arg, std::vector<capture::ValueId>& operands) {
    mlir::MLIRContext* context = builder_.getContext();
    if (std::holds_alternative<capture::None>(arg)) return builder_.getUnitAttr();
    if (const auto* a = std::get_if<capture::Operand>(&arg)) return ref(a->value, operands);
    if (const auto* a = std::get_if<capture::OperandList>(&arg)) {
      std::vector<int32_t> list;
      for (capture::ValueId id : a->values) {
        list.push_back(id == capture::kNoValue ? -1 : static_cast<int32_t>(operands.size()));
        if (id != capture::kNoValue) operands.push_back(id);
      }
      return ir::RefListAttr::get(context, list);
    }
    if (const auto* a = std::get_if<int64_t>(&arg)) return builder_.getI64IntegerAttr(*a);
    if (const auto* a = std::get_if<double>(&arg)) return builder_.getF64FloatAttr(*a);
    if (const auto* a = std::get_if<bool>(&arg)) return builder_.getBoolAttr(*a);
    if (const auto* a = std::get_if<std::string>(&arg)) return builder_.getStringAttr(*a);
    if (const auto* a = std::get_if<capture::Complex>(&arg))
      return ir::ComplexAttr::get(context, builder_.getF64FloatAttr(a->re), builder_.getF64FloatAttr(a->im));
    if (const auto* a = std::get_if<capture::DeviceArg>(&arg))
      return ir::DeviceAttr::get(context, a->place == capture::Place::kHost);
    if (const auto* a = std::get_if<std::vector<int64_t>>(&arg)) return builder_.getDenseI64ArrayAttr(*a);
    if (const auto* a = std::get_if<std::vector<double>>(&arg)) return builder_.getDenseF64ArrayAttr(*a);
    const auto& bools = std::get<std::vector<bool>>(arg);
    return builder_.getDenseBoolArrayAttr(llvm::SmallVector<bool>(bools.begin(), bools.end()));
  }

  /// Where the memory of result number `index` comes from; null if it comes from nowhere that the call sees.
  ir::AliasAttr alias_of(capture::ValueId id, const std::vector<capture::ValueId>& operands,
                         const std::vector<capture::ValueId>& results, size_t index) {
    mlir::MLIRContext* context = builder_.getContext();
    const capture::StorageId storage = graph_.values[id].storage;
    const auto find = [&](const std::vector<capture::ValueId>& list, size_t end) {
      for (size_t i = 0; i < end; ++i)
        if (graph_.values[list[i]].storage == storage) return static_cast<int64_t>(i);
      return int64_t{-1};
    };
    if (const int64_t i = find(operands, operands.size()); i >= 0) return ir::AliasAttr::get(context, ir::AliasKind::Operand, i);
    if (const int64_t i = find(results, index); i >= 0) return ir::AliasAttr::get(context, ir::AliasKind::Result, i);
    if (known_.count(storage)) return {};
    return ir::AliasAttr::get(context, ir::AliasKind::Fresh, graph_.storages[storage].bytes);
  }

  static mlir::Location location_of(mlir::MLIRContext* context, const capture::Location& location) {
    return ir::makeSourceLocation(context, {location.file, static_cast<unsigned>(location.line), location.module_path});
  }

  bool make_call(size_t index) {
    const capture::Call& call = graph_.calls[index];
    const auto loc = location_of(builder_.getContext(), call.location);
    const std::string what = "call " + std::to_string(index) + " (" + call.op + ")";
    std::vector<capture::ValueId> operands, results;
    std::vector<Attribute> args, returns, aliases;
    for (const capture::Arg& arg : call.args) args.push_back(translate(arg, operands));
    for (const capture::Result& result : call.results) {
      std::vector<int32_t> positions;
      for (capture::ValueId id : result.values) {
        positions.push_back(id == capture::kNoValue ? -1 : static_cast<int32_t>(results.size()));
        if (id != capture::kNoValue) results.push_back(id);
      }
      const auto kind = result.kind == capture::Result::Kind::kTensor       ? ir::ResultKind::Tensor
                        : result.kind == capture::Result::Kind::kTensorList ? ir::ResultKind::TensorList
                                                                            : ir::ResultKind::Other;
      returns.push_back(ir::ResultAttr::get(builder_.getContext(), kind, positions));
    }
    std::vector<Value> values;
    for (capture::ValueId id : operands) {
      values.push_back(value_of(id));
      if (!values.back()) return fault(loc, what + " reads value " + std::to_string(id) + ", which nothing has made yet");
    }
    std::vector<mlir::Type> types;
    for (size_t i = 0; i < results.size(); ++i) {
      aliases.push_back(alias_of(results[i], operands, results, i));
      if (!aliases.back())
        return fault(loc, what + ": result " + std::to_string(i) + " shares memory with a tensor that is none of its operands");
      types.push_back(type_of(results[i]));
    }
    std::vector<int32_t> mutates;
    for (capture::ValueId id : call.mutates) {
      const auto at = std::find(operands.begin(), operands.end(), id);
      if (at == operands.end())
        return fault(loc, what + " writes value " + std::to_string(id) + ", which is none of its operands");
      mutates.push_back(static_cast<int32_t>(at - operands.begin()));
    }
    mlir::OperationState state(loc, ir::CallOp::getOperationName(), values, types);
    state.addAttribute("id", builder_.getI32IntegerAttr(static_cast<int32_t>(index)));
    state.addAttribute("schema", builder_.getStringAttr(call.op));
    state.addAttribute("overload", builder_.getStringAttr(call.overload));
    state.addAttribute("args", builder_.getArrayAttr(args));
    state.addAttribute("returns", builder_.getArrayAttr(returns));
    state.addAttribute("aliases", builder_.getArrayAttr(aliases));
    if (!mutates.empty()) state.addAttribute("mutates", builder_.getDenseI32ArrayAttr(mutates));
    if (call.rng) state.addAttribute("rng", builder_.getUnitAttr());
    if (call.backward) state.addAttribute("backward", builder_.getUnitAttr());
    if (call.accumulation) state.addAttribute("accumulation", builder_.getUnitAttr());
    if (call.workspace_bytes >= 0) state.addAttribute("workspace_bytes", builder_.getI64IntegerAttr(call.workspace_bytes));
    mlir::Operation* op = builder_.create(state);
    for (size_t i = 0; i < results.size(); ++i) define(results[i], op->getResult(i));
    return true;
  }

  /// The position of an argument; -1 if the value is none.
  int32_t argument_of(capture::ValueId id) const {
    const auto found = argument_of_.find(id);
    return found == argument_of_.end() ? -1 : found->second;
  }

  bool make_border() {
    const auto loc = step_.getLoc();
    std::vector<Value> outputs, writebacks;
    std::vector<int32_t> tangents, arguments;
    llvm::SmallVector<bool> requires_grad;
    for (const capture::Output& output : graph_.outputs) {
      outputs.push_back(value_of(output.value));
      if (!outputs.back()) return fault(loc, "output " + std::to_string(outputs.size() - 1) + " is no value of forward");
      requires_grad.push_back(output.requires_grad);
      tangents.push_back(output.tangent == capture::kNoValue ? -1 : argument_of(output.tangent));
      if (output.tangent != capture::kNoValue && tangents.back() < 0) return fault(loc, "a tangent is no argument");
    }
    for (const capture::Writeback& writeback : graph_.writebacks) {
      writebacks.push_back(value_of(writeback.value));
      arguments.push_back(argument_of(writeback.argument));
      if (!writebacks.back() || arguments.back() < 0) return fault(loc, "a write-back names no value of forward or no argument");
    }
    ir::BorderOp::create(builder_, loc, outputs, writebacks, requires_grad, tangents, arguments);
    return true;
  }

  bool make_return() {
    const auto loc = step_.getLoc();
    std::vector<Value> gradients;
    std::vector<int32_t> arguments, undefined;
    for (const capture::Gradient& gradient : graph_.gradients) {
      const int32_t argument = argument_of(gradient.argument);
      if (argument < 0) return fault(loc, "a gradient belongs to no argument");
      if (gradient.value == capture::kNoValue) {
        undefined.push_back(argument);
        continue;
      }
      gradients.push_back(value_of(gradient.value));
      if (!gradients.back()) return fault(loc, "the gradient of argument " + std::to_string(argument) + " is made by nothing");
      arguments.push_back(argument);
    }
    ir::ReturnOp::create(builder_, loc, gradients, arguments, undefined);
    return true;
  }

  const capture::Graph& graph_;
  mlir::OpBuilder builder_;
  ir::StepOp step_;
  std::unordered_map<capture::ValueId, Value> values_;
  std::unordered_map<capture::StorageId, Value> known_;  // storages that something names
  std::unordered_map<capture::ValueId, int32_t> argument_of_;
};

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> ir_from_graph(mlir::MLIRContext& context, const capture::Graph& graph) {
  return Translator(context, graph).run();
}

}  // namespace memscale::driver

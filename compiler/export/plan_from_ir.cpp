// Writes a scheduled step down as fb::PlanT: one register per name, one instruction per kernel, frees on the instruction before
// them. Needs the phase scheduled; destroys nothing.
#include "compiler/export/plan_from_ir.h"

#include <map>
#include <set>

#include "compiler/export/segments.h"

namespace memscale::exporter {
namespace {

using mlir::Attribute;
using mlir::Value;

std::unique_ptr<fb::TensorMetaT> meta_of(mlir::Type type) {
  const auto tensor = mlir::cast<ir::StridedTensorType>(type);
  auto meta = std::make_unique<fb::TensorMetaT>();
  meta->dtype = tensor.getDtype().str();
  meta->sizes.assign(tensor.getSizes().begin(), tensor.getSizes().end());
  meta->strides.assign(tensor.getStrides().begin(), tensor.getStrides().end());
  meta->offset = tensor.getOffset();
  return meta;
}

fb::Role role_of(ir::Role role) {
  switch (role) {
    case ir::Role::Parameter:
      return fb::Role::Parameter;
    case ir::Role::Buffer:
      return fb::Role::Buffer;
    case ir::Role::Input:
      return fb::Role::Input;
    case ir::Role::Tangent:
      return fb::Role::Tangent;
    case ir::Role::Constant:
      return fb::Role::Constant;
  }
  return fb::Role::Constant;
}

class Writer {
 public:
  explicit Writer(ir::StepOp step) : step_(step), gradients_(hand_overs(step)), plan_(std::make_unique<fb::PlanT>()) {}

  Expected<fb::PlanT> run() {
    if (step_.getPhase() != ir::Phase::Scheduled)
      return Error{Exit::kInternal,
                   "export needs a step in the phase scheduled, found " + ir::stringifyPhase(step_.getPhase()).str(), ""};
    plan_->target = step_.getTarget().str();
    plan_->locations.push_back("");
    locations_[""] = 0;
    write_arguments();
    for (const HandOver& gradient : gradients_) handed_over_.insert(gradient.value);
    bool behind_border = false;
    for (mlir::Operation& op : step_.getBlock()) {
      if (auto border = mlir::dyn_cast<ir::BorderOp>(op)) {
        write_border(border);
        behind_border = true;
      } else if (auto free = mlir::dyn_cast<ir::FreeOp>(op)) {
        write_frees(free, behind_border);
      } else if (auto kernel = mlir::dyn_cast<ir::KernelOpInterface>(op)) {
        if (kernel.getAccumulation()) continue;  // autograd does it
        write_kernel(kernel, behind_border ? plan_->backward : plan_->forward);
        if (behind_border) backward_.push_back(kernel);
      }
    }
    write_segments();
    write_settings();
    plan_->register_count = registers_;
    return std::move(*plan_);
  }

 private:
  int32_t define(Value value) {
    const auto reg = static_cast<int32_t>(registers_++);
    register_of_[value] = reg;
    return reg;
  }
  int32_t reg(Value value) const { return register_of_.lookup(value); }

  void write_arguments() {
    for (mlir::BlockArgument value : step_.getBlock().getArguments()) {
      ir::ArgumentAttr info = step_.getArgumentInfo(value.getArgNumber());
      auto argument = std::make_unique<fb::ArgumentT>();
      argument->role = role_of(info.getRole());
      argument->name = info.getName().getValue().str();
      if (info.getAliases())
        for (Attribute alias : info.getAliases())
          argument->aliases.push_back(mlir::cast<mlir::StringAttr>(alias).getValue().str());
      argument->reg = define(value);
      argument->meta = meta_of(value.getType());
      argument->place = mlir::cast<ir::StridedTensorType>(value.getType()).getHost() ? fb::Place::Host : fb::Place::Target;
      argument->requires_grad = info.getRequiresGrad();
      argument->persistent = info.getPersistent();
      argument->wrapped_number = info.getWrappedNumber();
      if (info.getData()) argument->data.assign(info.getData().begin(), info.getData().end());
      plan_->arguments.push_back(std::move(argument));
    }
  }

  std::unique_ptr<fb::ArgT> write_arg(ir::KernelOpInterface kernel, Attribute attr) const {
    auto arg = std::make_unique<fb::ArgT>();
    const auto operand = [&](int32_t i) { return i == -1 ? -1 : reg(kernel->getOperand(i)); };
    arg->kind = fb::ArgKind::None;
    if (auto a = mlir::dyn_cast<ir::RefAttr>(attr)) {
      arg->kind = fb::ArgKind::Reg;
      arg->i = operand(a.getOperand());
    } else if (auto a = mlir::dyn_cast<ir::RefListAttr>(attr)) {
      arg->kind = fb::ArgKind::RegList;
      for (int32_t i : a.getOperands()) arg->regs.push_back(operand(i));
    } else if (auto a = mlir::dyn_cast<mlir::BoolAttr>(attr)) {
      arg->kind = fb::ArgKind::Bool;
      arg->i = a.getValue();
    } else if (auto a = mlir::dyn_cast<mlir::IntegerAttr>(attr)) {
      arg->kind = fb::ArgKind::Int;
      arg->i = a.getInt();
    } else if (auto a = mlir::dyn_cast<mlir::FloatAttr>(attr)) {
      arg->kind = fb::ArgKind::Float;
      arg->f = a.getValueAsDouble();
    } else if (auto a = mlir::dyn_cast<mlir::StringAttr>(attr)) {
      arg->kind = fb::ArgKind::String;
      arg->s = a.getValue().str();
    } else if (auto a = mlir::dyn_cast<ir::ComplexAttr>(attr)) {
      arg->kind = fb::ArgKind::Complex;
      arg->f = a.getRe().getValueAsDouble();
      arg->g = a.getIm().getValueAsDouble();
    } else if (auto a = mlir::dyn_cast<ir::DeviceAttr>(attr)) {
      arg->kind = fb::ArgKind::Device;
      arg->i = static_cast<int64_t>(a.getHost() ? fb::Place::Host : fb::Place::Target);
    } else if (auto a = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(attr)) {
      arg->kind = fb::ArgKind::Ints;
      arg->ints.assign(a.asArrayRef().begin(), a.asArrayRef().end());
    } else if (auto a = mlir::dyn_cast<mlir::DenseF64ArrayAttr>(attr)) {
      arg->kind = fb::ArgKind::Floats;
      arg->floats.assign(a.asArrayRef().begin(), a.asArrayRef().end());
    } else if (auto a = mlir::dyn_cast<mlir::DenseBoolArrayAttr>(attr)) {
      arg->kind = fb::ArgKind::Bools;
      arg->ints.assign(a.asArrayRef().begin(), a.asArrayRef().end());
    }
    return arg;
  }

  /// The register of a result; -1 if nothing reads it, so that it is dropped at once.
  int32_t define_result(Value value) {
    for (mlir::Operation* user : value.getUsers())
      if (!mlir::isa<ir::FreeOp>(user)) return define(value);
    return -1;
  }

  void write_kernel(ir::KernelOpInterface kernel, std::vector<std::unique_ptr<fb::InstrT>>& list) {
    auto instr = std::make_unique<fb::InstrT>();
    const std::pair<std::string, std::string> name(kernel.getSchema().str(), kernel.getOverload().str());
    const auto [op, fresh] = ops_.try_emplace(name, static_cast<uint32_t>(plan_->ops.size()));
    if (fresh) {
      plan_->ops.push_back(std::make_unique<fb::OpNameT>());
      plan_->ops.back()->name = name.first;
      plan_->ops.back()->overload = name.second;
    }
    instr->op = op->second;
    for (Attribute arg : kernel.getArgs()) instr->args.push_back(write_arg(kernel, arg));
    for (Attribute attr : kernel.getReturns()) {
      auto entry = mlir::cast<ir::ResultAttr>(attr);
      auto result = std::make_unique<fb::ResultT>();
      result->kind = entry.getKind() == ir::ResultKind::Tensor       ? fb::ResultKind::Tensor
                     : entry.getKind() == ir::ResultKind::TensorList ? fb::ResultKind::TensorList
                                                                     : fb::ResultKind::Other;
      for (int32_t i : entry.getResults()) {
        result->regs.push_back(i == -1 ? -1 : define_result(kernel->getResult(i)));
        if (result->regs.back() != -1) instr->first_layout.push_back(meta_of(kernel->getResult(i).getType()));
      }
      instr->results.push_back(std::move(result));
    }
    instr->recompute = mlir::isa<ir::RecomputeOp>(kernel.getOperation());
    if (const auto slot = kernel.getRngSlot()) {
      (instr->recompute ? instr->rng_replay : instr->rng_save) = static_cast<int32_t>(*slot);
      plan_->rng_slot_count = std::max(plan_->rng_slot_count, *slot + 1);
    }
    const std::string location = ir::describeLocation(kernel.getLoc());
    const auto [at, unseen] = locations_.try_emplace(location, static_cast<uint32_t>(plan_->locations.size()));
    if (unseen) plan_->locations.push_back(location);
    instr->location = at->second;
    list.push_back(std::move(instr));
  }

  void write_frees(ir::FreeOp free, bool behind_border) {
    std::vector<int32_t>& frees = !behind_border            ? plan_->forward.back()->frees
                                  : plan_->backward.empty() ? plan_->forward_frees
                                                            : plan_->backward.back()->frees;
    for (Value value : free.getTensors())
      if (register_of_.contains(value) && !handed_over_.contains(value)) frees.push_back(reg(value));
  }

  void write_border(ir::BorderOp border) {
    for (size_t i = 0; i < border.getOutputs().size(); ++i) {
      auto output = std::make_unique<fb::OutputT>();
      output->reg = reg(border.getOutputs()[i]);
      output->requires_grad = border.getRequiresGrad()[i];
      const int32_t tangent = border.getTangents()[i];
      output->tangent = tangent == -1 ? -1 : reg(step_.getBlock().getArgument(tangent));
      output->meta = meta_of(border.getOutputs()[i].getType());
      plan_->outputs.push_back(std::move(output));
    }
    for (size_t i = 0; i < border.getWritebacks().size(); ++i) {
      auto writeback = std::make_unique<fb::WritebackT>();
      writeback->argument = border.getWritebackArguments()[i];
      writeback->reg = reg(border.getWritebacks()[i]);
      plan_->writebacks.push_back(std::move(writeback));
    }
  }

  void write_segments() {
    ir::ReturnOp ret = step_.getReturn();
    for (const SegmentCut& cut : cut_segments(step_, gradients_, backward_)) {
      auto segment = std::make_unique<fb::SegmentT>();
      segment->name = cut.name;
      segment->begin = static_cast<uint32_t>(cut.begin);
      segment->end = static_cast<uint32_t>(cut.end);
      std::set<int32_t> frees;
      for (int32_t g : cut.gradients) {
        const auto& [value, argument] = gradients_[g];
        add_gradient(*segment, argument, reg(value));
        if (!mlir::isa<mlir::BlockArgument>(value)) frees.insert(reg(value));
      }
      segment->frees.assign(frees.begin(), frees.end());
      plan_->segments.push_back(std::move(segment));
    }
    if (ret.getUndefined().empty()) return;
    if (plan_->segments.empty()) {
      plan_->segments.push_back(std::make_unique<fb::SegmentT>());
      plan_->segments.back()->name = "backward.0";
    }
    for (int32_t argument : ret.getUndefined()) add_gradient(*plan_->segments.front(), argument, -1);
  }

  static void add_gradient(fb::SegmentT& segment, int32_t argument, int32_t reg) {
    segment.gradients.push_back(std::make_unique<fb::GradientT>());
    segment.gradients.back()->argument = argument;
    segment.gradients.back()->reg = reg;
  }

  void write_settings() {
    if (const auto guards = step_.getGuards())
      for (mlir::NamedAttribute entry : *guards) {
        plan_->guards.push_back(std::make_unique<fb::GuardT>());
        plan_->guards.back()->name = entry.getName().str();
        plan_->guards.back()->value = mlir::cast<mlir::StringAttr>(entry.getValue()).getValue().str();
      }
    if (const auto structure = step_.getInputStructure()) plan_->input_structure = structure->str();
    if (const auto structure = step_.getOutputStructure()) plan_->output_structure = structure->str();
  }

  ir::StepOp step_;
  std::vector<HandOver> gradients_;
  llvm::DenseSet<Value> handed_over_;  // freed by their segment
  std::unique_ptr<fb::PlanT> plan_;
  llvm::DenseMap<Value, int32_t> register_of_;
  uint32_t registers_ = 0;
  std::map<std::pair<std::string, std::string>, uint32_t> ops_;
  std::map<std::string, uint32_t> locations_;
  std::vector<ir::KernelOpInterface> backward_;
};

}  // namespace

Expected<fb::PlanT> plan_from_ir(ir::StepOp step) { return Writer(step).run(); }

}  // namespace memscale::exporter

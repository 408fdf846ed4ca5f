//===- BuildProblem.cpp - A step as a planner::Problem ---------------------===//
//
// Ops are the calls that are no views. Runs once only: what writes memory, what
// reads memory that the border writes back into, and what makes memory that a
// call which is no view names anew (such a name can be made by that call alone).
// Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/policy/BuildProblem.h"

#include "passes/analysis/InPlaceForms.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace memscale;
using namespace memscale::ir;
using namespace memscale::passes;

std::string memscale::passes::describeCall(KernelOpInterface call) {
  std::string text = getSourceLocation(call.getLoc()).modulePath.str();
  if (!text.empty())
    text += " / ";
  text += call.getSchema().str();
  if (!call.getOverload().empty())
    text += "." + call.getOverload().str();
  return text + " #" + std::to_string(call.getId());
}

static planner::Role roleOf(Role role) {
  switch (role) {
  case Role::Parameter:
    return planner::Role::kParameter;
  case Role::Buffer:
    return planner::Role::kBuffer;
  case Role::Input:
    return planner::Role::kInput;
  case Role::Tangent:
    return planner::Role::kTangent;
  case Role::Constant:
    return planner::Role::kConstant;
  }
  return planner::Role::kConstant;
}

static void sortUnique(std::vector<int32_t> &list) {
  llvm::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

namespace {
class ProblemBuilder {
public:
  ProblemBuilder(StepOp step, const Storages &storages, const CostModel &costs, int64_t staticBytes)
      : step(step), storages(storages), costs(costs) {
    built.problem.name = step.getSymName().str();
    built.problem.static_bytes = staticBytes;
  }

  BuiltProblem run() {
    addStorages();
    markKept();
    findSingleRuns();
    for (auto kernel : step.getBlock().getOps<KernelOpInterface>())
      if (!isView(kernel))
        addOp(kernel);
    auto &ops = built.problem.ops;
    auto backward = llvm::find_if(ops, [](const planner::Op &op) { return op.backward; });
    built.problem.border = static_cast<int32_t>(backward - ops.begin());
    return std::move(built);
  }

private:
  void addStorages() {
    for (size_t s = 0; s < storages.size(); ++s) {
      const StorageInfo &info = storages.info(s);
      planner::Storage storage;
      storage.bytes = info.host ? 0 : roundBytes(info.bytes, costs.rounding_bytes);
      if (info.argument >= 0) {
        ArgumentAttr argument = step.getArgumentInfo(info.argument);
        storage.name = argument.getName().getValue().str();
        storage.role = roleOf(argument.getRole());
        storage.resident = true;
      } else {
        storage.name = describeCall(cast<KernelOpInterface>(info.producer));
      }
      built.problem.storages.push_back(std::move(storage));
    }
  }

  void markKept() {
    BorderOp border = step.getBorder();
    for (Value value : border->getOperands())
      keep(value, planner::Role::kOutput);
    llvm::DenseMap<int32_t, int32_t> seen;
    ReturnOp ret = step.getReturn();
    for (auto [value, argument] : llvm::zip_equal(ret.getGradients(), ret.getArguments())) {
      auto [other, fresh] = seen.try_emplace(storages.of(value), argument);
      if (!fresh)
        built.notes.push_back("the gradients of " + name(other->second) + " and " + name(argument) +
                              " are one tensor in eager; each receives its own copy when it is accumulated");
      keep(value, planner::Role::kGradient);
    }
  }

  std::string name(int32_t argument) { return "'" + step.getArgumentInfo(argument).getName().getValue().str() + "'"; }

  void keep(Value value, planner::Role role) {
    planner::Storage &storage = built.problem.storages[storages.of(value)];
    if (storage.resident)
      return;
    storage.keep = true;
    storage.role = role;
  }

  void findSingleRuns() {
    for (auto kernel : step.getBlock().getOps<KernelOpInterface>()) {
      if (isView(kernel))
        continue;
      for (auto [index, attr] : llvm::enumerate(kernel.getAliases())) {
        if (cast<AliasAttr>(attr).getKind() != AliasKind::Operand)
          continue;
        once.insert(kernel);
        if (Operation *producer = storages.infoOf(kernel->getResult(index)).producer)
          once.insert(producer);
      }
    }
    for (int32_t argument : step.getBorder().getWritebackArguments())
      written.insert(storages.of(step.getBlock().getArgument(argument)));
  }

  void addOp(KernelOpInterface kernel) {
    planner::Op op;
    op.name = kernel.getSchema().str();
    op.time_us = costs.time_us(kernel);
    op.workspace_bytes = workspace(kernel);
    op.rng = kernel.getRng();
    op.backward = kernel.getBackward();
    op.block = kernel.getBlockNumber() ? static_cast<int32_t>(*kernel.getBlockNumber()) : -1;
    for (Value operand : kernel->getOperands())
      op.inputs.push_back(storages.of(operand));
    for (int32_t operand : kernel.getMutates())
      op.mutates.push_back(storages.of(kernel->getOperand(operand)));
    for (OpResult result : kernel->getResults())
      if (kernel.getAlias(result.getResultNumber()).isFresh())
        op.outputs.push_back(storages.of(result));
    sortUnique(op.inputs);
    sortUnique(op.outputs);
    sortUnique(op.mutates);
    op.recomputable = op.mutates.empty() && !once.contains(kernel) &&
                      llvm::none_of(op.inputs, [&](int32_t input) { return written.contains(input); });
    SmallVector<unsigned, 2> operands;
    for (unsigned operand : inPlaceOperands(kernel, storages)) {
      int32_t input = storages.of(kernel->getOperand(operand));
      if (built.problem.storages[input].keep)
        continue;
      op.inplace.push_back({input, op.outputs.front()});
      operands.push_back(operand);
    }
    built.problem.ops.push_back(std::move(op));
    built.calls.push_back(kernel);
    built.inplace_operands.push_back(std::move(operands));
  }

  int64_t workspace(KernelOpInterface kernel) {
    if (kernel.getWorkspaceBytes())
      return roundBytes(*kernel.getWorkspaceBytes(), costs.rounding_bytes);
    int64_t bytes = costs.workspace_bytes(kernel);
    if (bytes >= 0)
      return roundBytes(bytes, costs.rounding_bytes);
    ++built.unknown_workspaces[kernel.getSchema().str()];
    return 0;
  }

  StepOp step;
  const Storages &storages;
  const CostModel &costs;
  BuiltProblem built;
  llvm::DenseSet<Operation *> once; // calls that must not run a second time
  llvm::DenseSet<int32_t> written;  // storages that write-backs change
};
} // namespace

BuiltProblem memscale::passes::buildProblem(StepOp step, const Storages &storages, const CostModel &costs, int64_t static_bytes) {
  return ProblemBuilder(step, storages, costs, static_bytes).run();
}

//===- ApplyPlan.cpp - The step in the order of its schedule ---------------===//
//
// Builds the block anew, run by run. Needs the phase planned; destroys the old
// order. Leaves the phase rewritten.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/analysis/Storages.h"

namespace memscale::passes {
#define GEN_PASS_DEF_APPLYPLAN
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
class Rewriter {
public:
  explicit Rewriter(StepOp step) : step(step), storages(step), builder(step.getContext()) {}

  LogicalResult run() {
    for (auto kernel : step.getBlock().getOps<KernelOpInterface>())
      calls[kernel.getId()] = kernel;
    if (failed(readSchedule()))
      return failure();
    collectKept();
    BorderOp border = step.getBorder();
    ReturnOp ret = step.getReturn();
    old = std::make_unique<Block>();
    old->getOperations().splice(old->end(), step.getBlock().getOperations());
    builder.setInsertionPointToEnd(&step.getBlock());
    if (borderAfter < 0)
      emit(border);
    for (auto [run, entry] : llvm::enumerate(schedule)) {
      execute(entry.first, entry.second);
      if (static_cast<int64_t>(run) == borderAfter)
        emit(border);
    }
    emit(ret);
    for (Operation &op : *old)
      op.dropAllUses();
    old->clear();
    if (broken)
      return failure();
    step.setPhase(Phase::Rewritten);
    step.removeScheduleAttr();
    step.removeScheduleInplaceAttr();
    return success();
  }

  unsigned recomputes = 0;

private:
  /// Finds the calls of the schedule, how often each runs, and where the border stands.
  LogicalResult readSchedule() {
    DenseMap<uint32_t, unsigned> runs;
    uint32_t nextSlot = 0;
    borderAfter = -1;
    int64_t position = 0;
    ArrayRef<int32_t> ids = *step.getSchedule(), inplace = *step.getScheduleInplace();
    for (auto [id, operand] : llvm::zip_equal(ids, inplace)) {
      auto call = calls.find(id);
      if (call == calls.end())
        return step.emitOpError("has call ") << id << " in its schedule, which it does not hold";
      if (runs[id]++ == 0 && !call->second.getBackward())
        borderAfter = position;
      if (runs[id] == 2 && call->second.getRng())
        slots[id] = nextSlot++;
      schedule.emplace_back(call->second, operand);
      ++position;
    }
    for (auto kernel : step.getBlock().getOps<KernelOpInterface>())
      if (!isView(kernel) && !runs.contains(kernel.getId()))
        return kernel->emitOpError("is missing from the schedule");
    return success();
  }

  /// What the caller gets, and what is written back, is the first instance of its memory.
  void collectKept() {
    for (Operation *op : {step.getBorder().getOperation(), step.getReturn().getOperation()})
      for (Value value : op->getOperands())
        if (storages.infoOf(value).producer)
          kept[storages.of(value)].push_back(value);
  }

  void execute(KernelOpInterface call, int32_t takesOver) {
    bool first = ran.insert(call).second;
    Operation *clone = emitKernel(call, first);
    if (takesOver >= 0)
      clone->setAttr("takes_over", builder.getI32IntegerAttr(takesOver));
    for (auto [result, copy] : llvm::zip_equal(call->getResults(), clone->getResults())) {
      int32_t storage = storages.of(result);
      if (call.getAlias(cast<OpResult>(result).getResultNumber()).isFresh()) {
        for (Value name : storages.info(storage).names)
          current.erase(name);
      }
      current[result] = copy;
    }
    // Names of what the caller gets, before a later run makes another instance.
    if (!first)
      return;
    for (Value result : call->getResults())
      if (auto values = kept.find(storages.of(result)); values != kept.end())
        for (Value value : values->second)
          if (isNamedFrom(value, call))
            final[value] = lookup(value);
  }

  /// True if `value` is a result of `call` or a chain of views of one.
  bool isNamedFrom(Value value, KernelOpInterface call) const {
    while (value.getDefiningOp() && isView(cast<KernelOpInterface>(value.getDefiningOp())))
      value = value.getDefiningOp()->getOperand(0);
    return value.getDefiningOp() == call.getOperation();
  }

  /// The present instance of a value; views are made where they are missing.
  Value lookup(Value value) {
    SmallVector<KernelOpInterface> chain;
    Value at = value;
    while (!isa<BlockArgument>(at) && !current.contains(at)) {
      if (!isView(cast<KernelOpInterface>(at.getDefiningOp()))) {
        missing(value, at);
        return value;
      }
      chain.push_back(cast<KernelOpInterface>(at.getDefiningOp()));
      at = chain.back()->getOperand(0);
    }
    for (KernelOpInterface view : llvm::reverse(chain)) {
      Operation *clone = emitKernel(view, ran.insert(view).second);
      for (auto [result, copy] : llvm::zip_equal(view->getResults(), clone->getResults()))
        current[result] = copy;
    }
    return isa<BlockArgument>(value) ? value : current.lookup(value);
  }

  void missing(Value value, Value at) {
    if (!broken)
      at.getDefiningOp()->emitOpError(
          "has no live result where the schedule reads it: it runs later, or a later run replaced what a view needs");
    broken = true;
  }

  Operation *emitKernel(KernelOpInterface call, bool first) {
    SmallVector<Value> operands;
    for (Value operand : call->getOperands())
      operands.push_back(lookup(operand));
    StringRef name = first ? CallOp::getOperationName() : RecomputeOp::getOperationName();
    OperationState state(call.getLoc(), name, operands, call->getResultTypes(), call->getAttrs());
    Operation *clone = builder.create(state);
    if (auto slot = slots.find(call.getId()); slot != slots.end())
      clone->setAttr("rng_slot", builder.getI32IntegerAttr(slot->second));
    recomputes += !first && !isView(call);
    return clone;
  }

  /// Moves the border or the return behind what has been built, with the final names of its operands.
  void emit(Operation *op) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto name = final.find(operand);
      operands.push_back(name != final.end() ? name->second : lookup(operand));
    }
    op->remove();
    op->setOperands(operands);
    builder.insert(op);
  }

  StepOp step;
  Storages storages;
  OpBuilder builder;
  std::unique_ptr<Block> old;
  DenseMap<uint32_t, KernelOpInterface> calls;
  SmallVector<std::pair<KernelOpInterface, int32_t>> schedule;
  int64_t borderAfter = -1;
  DenseMap<uint32_t, uint32_t> slots;            // random calls that run again
  DenseMap<int32_t, SmallVector<Value, 2>> kept; // per storage, values that the border or the return uses
  DenseMap<Value, Value> current;                // captured value → its present instance
  DenseMap<Value, Value> final;                  // captured value → the instance that the caller gets
  DenseSet<Operation *> ran;
  bool broken = false;
};

struct ApplyPlan : memscale::passes::impl::ApplyPlanBase<ApplyPlan> {
  void runOnOperation() override {
    StepOp step = getOperation();
    if (step.getReference())
      return;
    if (step.getPhase() != Phase::Planned) {
      step.emitOpError("expected the phase `planned`, found `")
          << stringifyPhase(step.getPhase()) << "`; run memscale-plan-recompute first";
      return signalPassFailure();
    }
    Rewriter rewriter(step);
    if (failed(rewriter.run()))
      return signalPassFailure();
    numRecomputes += rewriter.recomputes;
  }
};
} // namespace

//===- VerifyMemory.cpp - Names, frees and memory taken over ---------------===//
//
// Executes the step on names: alive, freed, overwritten. Needs the phase
// scheduled; changes nothing. Finds memory by its own walk over the alias
// entries.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/Verify.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace memscale::passes {
#define GEN_PASS_DEF_VERIFYMEMORY
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;

namespace {
/// A name, the memory that it shows, and how often that memory had been taken over when the name was made.
struct Name {
  int32_t memory = -1;
  int32_t epoch = 0;
  bool freed = false;
};

class Checker {
public:
  explicit Checker(StepOp step) : step(step) {}

  LogicalResult run() {
    if (step.getPhase() != Phase::Scheduled)
      return step.emitOpError("expected the phase `scheduled`, found `")
             << stringifyPhase(step.getPhase()) << "`; run memscale-insert-frees first";
    for (BlockArgument argument : step.getBlock().getArguments()) {
      int32_t storage = step.getArgumentInfo(argument.getArgNumber()).getStorage();
      if (storage == static_cast<int32_t>(argument.getArgNumber()))
        open(argument);
      else
        names[argument] = names[step.getBlock().getArgument(storage)];
    }
    argumentMemories = static_cast<int32_t>(epochs.size());
    for (Operation &op : step.getBlock())
      if (failed(visit(op)))
        return failure();
    return checkLeaks();
  }

private:
  void open(Value value) {
    names[value] = {static_cast<int32_t>(epochs.size()), 0, false};
    epochs.push_back(0);
  }

  LogicalResult read(Operation &op, Value value, unsigned operand) {
    const Name &name = names[value];
    if (name.freed)
      return op.emitOpError("reads operand #") << operand << " after it was freed";
    if (name.epoch != epochs[name.memory])
      return op.emitOpError("reads operand #") << operand << " after a kernel took its memory over";
    return success();
  }

  LogicalResult visit(Operation &op) {
    if (auto free = dyn_cast<FreeOp>(op)) {
      for (Value value : free.getTensors()) {
        Name &name = names[value];
        if (name.freed)
          return op.emitOpError("frees a tensor a second time");
        name.freed = true;
      }
      return success();
    }
    for (auto [index, operand] : llvm::enumerate(op.getOperands()))
      if (failed(read(op, operand, index)))
        return failure();
    if (auto border = dyn_cast<BorderOp>(op))
      for (Value output : border.getOutputs())
        given.insert(names[output].memory);
    auto kernel = dyn_cast<KernelOpInterface>(op);
    return kernel ? run(kernel) : success();
  }

  LogicalResult run(KernelOpInterface kernel) {
    if (auto operand = kernel->getAttrOfType<IntegerAttr>("takes_over"))
      if (failed(takeOver(kernel, operand.getInt())))
        return failure();
    for (OpResult result : kernel->getResults()) {
      Value source = kernel.getAliasSource(result.getResultNumber());
      if (!source) {
        open(result);
        continue;
      }
      Name shared = names[source];
      names[result] = {shared.memory, epochs[shared.memory], false};
    }
    return success();
  }

  LogicalResult takeOver(KernelOpInterface kernel, int64_t operand) {
    if (!llvm::is_contained(kernel.getMutates(), operand))
      return kernel->emitOpError("should take over operand #") << operand << " but does not write it";
    int32_t memory = names[kernel->getOperand(operand)].memory;
    if (memory < argumentMemories)
      return kernel->emitOpError("takes over the memory of an argument");
    if (given.contains(memory))
      return kernel->emitOpError("takes over the memory of an output");
    ++epochs[memory];
    return success();
  }

  LogicalResult checkLeaks() {
    for (Operation &op : step.getBlock())
      for (OpResult result : op.getResults()) {
        bool gradient = llvm::is_contained(step.getReturn().getGradients(), result);
        if (names[result].freed == gradient)
          return op.emitOpError("result #") << result.getResultNumber()
                                            << (gradient ? " is a gradient but is freed" : " is never freed");
      }
    return success();
  }

  StepOp step;
  llvm::DenseMap<Value, Name> names;
  SmallVector<int32_t> epochs;   // per memory, how often it was taken over
  llvm::DenseSet<int32_t> given; // memory that the caller has
  int32_t argumentMemories = 0;
};

struct VerifyMemory : memscale::passes::impl::VerifyMemoryBase<VerifyMemory> {
  void runOnOperation() override {
    if (!getOperation().getReference() && failed(memscale::passes::verifyMemory(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

LogicalResult memscale::passes::verifyMemory(StepOp step) { return Checker(step).run(); }

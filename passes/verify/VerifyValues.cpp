//===- VerifyValues.cpp - Value numbering of the rewritten step ------------===//
//
// Runs both steps on symbols. A piece of memory holds contents: those of an
// argument, or what a captured call put there. A read is contents and layout.
// Needs the captured step; changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/verify/InPlaceRules.h"
#include "passes/verify/Verify.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace memscale::passes {
#define GEN_PASS_DEF_VERIFYVALUES
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
/// What stands in a piece of memory.
struct Contents {
  enum Kind : int32_t { Argument, Result, Written } kind = Argument;
  int32_t call = -1;  // id of the captured call; -1 for arguments
  int32_t index = -1; // position of the argument, number of the result or of the mutated operand
  bool operator==(const Contents &) const = default;

  std::string describe() const {
    if (kind == Argument)
      return "argument #" + std::to_string(index);
    return (kind == Result ? "result #" : "operand #") + std::to_string(index) +
           (kind == Written ? ", written by call " : " of call ") + std::to_string(call);
  }
};

struct Read {
  Contents contents;
  Type type;
  bool operator==(const Read &) const = default;
};

/// Memory and its contents while a step runs.
class Memory {
public:
  explicit Memory(StepOp step) {
    for (BlockArgument argument : step.getBlock().getArguments()) {
      int32_t number = argument.getArgNumber(), first = step.getArgumentInfo(number).getStorage();
      if (first == number)
        open(argument, {Contents::Argument, -1, number});
      else
        cells[argument] = cells.lookup(step.getBlock().getArgument(first));
    }
  }
  void open(Value value, Contents what) {
    cells[value] = contents.size();
    contents.push_back(what);
  }
  void share(Value value, Value with) { cells[value] = cells.lookup(with); }
  void write(Value value, Contents what) { contents[cells.lookup(value)] = what; }
  int32_t cell(Value value) const { return cells.lookup(value); }
  Read read(Value value) const { return {contents[cells.lookup(value)], value.getType()}; }

private:
  llvm::DenseMap<Value, int32_t> cells;
  SmallVector<Contents> contents;
};

/// Applies a kernel of the captured form: mutations first, then results.
void runCaptured(KernelOpInterface kernel, Memory &memory) {
  int32_t id = kernel.getId();
  for (int32_t operand : kernel.getMutates())
    memory.write(kernel->getOperand(operand), {Contents::Written, id, operand});
  for (OpResult result : kernel->getResults()) {
    int32_t number = result.getResultNumber();
    if (Value source = kernel.getAliasSource(number))
      memory.share(result, source);
    else
      memory.open(result, {Contents::Result, id, number});
  }
}

/// One captured call and what it read.
struct Captured {
  KernelOpInterface kernel;
  SmallVector<Read, 4> reads;
};

class Prover {
public:
  Prover(StepOp captured, StepOp step) : captured(captured), step(step), before(captured), after(step) {}

  LogicalResult run() {
    if (captured.getArguments() != step.getArguments() || captured.getTarget() != step.getTarget())
      return step.emitOpError("has other arguments than its reference");
    if (failed(record()))
      return failure();
    for (Operation &op : step.getBlock()) {
      if (auto border = dyn_cast<BorderOp>(op)) {
        if (failed(checkBorder(border)))
          return failure();
      } else if (auto kernel = dyn_cast<KernelOpInterface>(op)) {
        if (failed(isa<CallOp>(op) ? checkCall(kernel) : checkRecompute(kernel)))
          return failure();
      }
    }
    return finish();
  }

private:
  LogicalResult record() {
    for (Operation &op : captured.getBlock()) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel) {
        if (auto border = dyn_cast<BorderOp>(op))
          for (Value output : border->getOperands())
            borderReads.push_back(before.read(output));
        continue;
      }
      Captured call{kernel, {}};
      for (Value operand : op.getOperands())
        call.reads.push_back(before.read(operand));
      if (!calls.try_emplace(kernel.getId(), std::move(call)).second)
        return op.emitOpError("has the number ") << kernel.getId() << " a second time in the reference";
      if (kernel.getRng())
        draws.push_back(kernel.getId());
      if (!kernel.getMutates().empty())
        writes.push_back(kernel.getId());
      runCaptured(kernel, before);
    }
    return success();
  }

  InFlightDiagnostic fault(Operation *op, const Twine &what) { return op->emitError() << "memscale-verify-values: " << what; }

  LogicalResult same(Operation *op, const Read &expected, const Read &found, const Twine &what) {
    if (expected == found)
      return success();
    if (expected.contents == found.contents)
      return fault(op, what) << " has the type " << found.type << ", the captured step has " << expected.type;
    return fault(op, what) << " holds " << found.contents.describe() << ", the captured step reads "
                           << expected.contents.describe();
  }

  LogicalResult checkCall(KernelOpInterface kernel) {
    if (!ran.insert(kernel.getId()).second)
      return fault(kernel, "call " + Twine(kernel.getId()) + " stands twice as a first run");
    Captured *call = find(kernel);
    if (!call)
      return failure();
    if (failed(checkKernel(kernel, *call)))
      return failure();
    if (call->kernel.getRng()) {
      if (nextDraw == draws.size() || draws[nextDraw] != static_cast<int32_t>(kernel.getId()))
        return fault(kernel, "draws random numbers out of order")
               << ", expected call " << (nextDraw < draws.size() ? draws[nextDraw] : -1);
      ++nextDraw;
      if (auto slot = kernel.getRngSlot())
        slots[*slot] = kernel.getId();
    }
    if (!call->kernel.getMutates().empty()) {
      if (nextWrite == writes.size() || writes[nextWrite] != static_cast<int32_t>(kernel.getId()))
        return fault(kernel, "writes memory out of order")
               << ", expected call " << (nextWrite < writes.size() ? writes[nextWrite] : -1);
      ++nextWrite;
    }
    return success();
  }

  LogicalResult checkRecompute(KernelOpInterface kernel) {
    Captured *call = find(kernel);
    if (!call)
      return failure();
    if (!ran.contains(kernel.getId()))
      return fault(kernel, "recomputes call " + Twine(kernel.getId()) + " before its first run");
    if (!call->kernel.getMutates().empty())
      return fault(kernel, "repeats a write");
    if (call->kernel.getRng()) {
      auto slot = kernel.getRngSlot();
      if (!slot || !slots.contains(*slot) || slots[*slot] != static_cast<int32_t>(kernel.getId()))
        return fault(kernel, "draws random numbers without the state of its first run");
    }
    return checkKernel(kernel, *call);
  }

  Captured *find(KernelOpInterface kernel) {
    auto it = calls.find(kernel.getId());
    if (it != calls.end())
      return &it->second;
    fault(kernel, "call " + Twine(kernel.getId()) + " is no call of the captured step");
    return nullptr;
  }

  LogicalResult checkKernel(KernelOpInterface kernel, Captured &call) {
    KernelOpInterface original = call.kernel;
    if (kernel.getRng() != original.getRng() || kernel.getBackward() != original.getBackward() ||
        kernel.getReturns() != original.getReturns())
      return fault(kernel, "call " + Twine(kernel.getId()) + " has other effects or returns than its captured form");
    if (kernel->getNumOperands() < call.reads.size())
      return fault(kernel, "call " + Twine(kernel.getId()) + " has fewer operands than its captured form");
    for (auto [index, expected] : llvm::enumerate(call.reads))
      if (failed(same(kernel, expected, after.read(kernel->getOperand(index)), "operand #" + Twine(index))))
        return failure();
    for (auto [index, type] : llvm::enumerate(original->getResultTypes()))
      if (kernel->getResult(index).getType() != type)
        return fault(kernel, "result #" + Twine(index))
               << " has the type " << kernel->getResult(index).getType() << ", the captured step has " << type;
    bool sameForm = kernel.getSchema() == original.getSchema() && kernel.getOverload() == original.getOverload() &&
                    kernel.getArgs() == original.getArgs() && kernel.getAliases() == original.getAliases() &&
                    kernel.getMutates() == original.getMutates();
    if (sameForm) {
      runCaptured(kernel, after);
      return success();
    }
    std::optional<unsigned> target = overwrittenOperand(kernel, original);
    if (!target)
      return fault(kernel, "call " + Twine(kernel.getId())) << " is " << kernel.getSchema() << ", neither the captured "
                                                            << original.getSchema() << " nor an in-place form of it";
    return overwrite(kernel, *target);
  }

  /// An in-place kernel reads everything before it writes, element by element: the target must be the only operand over its
  /// memory.
  LogicalResult overwrite(KernelOpInterface kernel, unsigned target) {
    Value overwritten = kernel->getOperand(target);
    for (Value operand : kernel->getOperands())
      if (operand != overwritten && after.cell(operand) == after.cell(overwritten))
        return fault(kernel, "overwrites operand #" + Twine(target) + ", whose memory another operand shows");
    int32_t id = kernel.getId();
    after.write(overwritten, {Contents::Result, id, 0});
    after.share(kernel->getResult(0), overwritten);
    return success();
  }

  LogicalResult checkBorder(BorderOp border) {
    BorderOp original = captured.getBorder();
    if (border->getAttrDictionary() != original->getAttrDictionary() || border->getNumOperands() != original->getNumOperands())
      return fault(border, "has other outputs or write-backs than the captured step");
    for (auto [index, expected] : llvm::enumerate(borderReads))
      if (failed(same(border, expected, after.read(border->getOperand(index)), "output or write-back #" + Twine(index))))
        return failure();
    // What the caller gets shares memory with arguments and among itself exactly where the captured step's does.
    auto results = llvm::zip_equal(original.getOutputs(), border.getOutputs());
    SmallVector<std::pair<int32_t, int32_t>> pairs;
    for (auto [from, to] : llvm::zip_equal(captured.getBlock().getArguments(), step.getBlock().getArguments()))
      pairs.emplace_back(before.cell(from), after.cell(to));
    for (auto [from, to] : results)
      pairs.emplace_back(before.cell(from), after.cell(to));
    llvm::DenseMap<int32_t, int32_t> forth, back;
    for (auto [from, to] : pairs)
      if (forth.try_emplace(from, to).first->second != to || back.try_emplace(to, from).first->second != from)
        return fault(border, "an output shares memory where the captured step's does not, or the other way round");
    return success();
  }

  LogicalResult finish() {
    ReturnOp original = captured.getReturn(), ret = step.getReturn();
    if (ret->getAttrDictionary() != original->getAttrDictionary() || ret->getNumOperands() != original->getNumOperands())
      return fault(ret, "has other gradients than the captured step");
    llvm::DenseMap<int32_t, int32_t> cells;
    for (auto [index, from, to] : llvm::enumerate(original.getGradients(), ret.getGradients())) {
      if (failed(same(ret, before.read(from), after.read(to), "gradient #" + Twine(index))))
        return failure();
      if (cells.try_emplace(after.cell(to), before.cell(from)).first->second != before.cell(from))
        return fault(ret, "gradient #" + Twine(index) + " shares memory with another, in the captured step it does not");
    }
    if (nextDraw != draws.size())
      return fault(step, "call " + Twine(draws[nextDraw]) + " draws random numbers and is missing");
    if (nextWrite != writes.size())
      return fault(step, "call " + Twine(writes[nextWrite]) + " writes memory and is missing");
    return success();
  }

  StepOp captured, step;
  Memory before, after;
  llvm::DenseMap<int32_t, Captured> calls;
  SmallVector<Read> borderReads;
  SmallVector<int32_t> draws, writes;
  size_t nextDraw = 0, nextWrite = 0;
  llvm::DenseSet<int32_t> ran;
  llvm::DenseMap<uint32_t, int32_t> slots; // slot → call whose state it holds
};

struct VerifyValues : memscale::passes::impl::VerifyValuesBase<VerifyValues> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>()) {
      if (step.getReference())
        continue;
      auto captured = dyn_cast_or_null<StepOp>(getOperation().lookupSymbol(referenceName(step)));
      if (!captured) {
        step.emitOpError("has no reference @")
            << referenceName(step) << "; run memscale-keep-reference on the captured step first";
        return signalPassFailure();
      }
      if (failed(verifyValues(captured, step)))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};
} // namespace

LogicalResult memscale::passes::verifyValues(StepOp captured, StepOp step) { return Prover(captured, step).run(); }

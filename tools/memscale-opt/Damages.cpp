//===- Damages.cpp - Faults put into a scheduled step ----------------------===//
//
// Needs a step that the verifiers accept. Destroys it, in one place.
//
//===----------------------------------------------------------------------===//

#include "Damages.h"

#include "passes/analysis/InPlaceForms.h"
#include "passes/analysis/Liveness.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
/// Counts sites: true at the one that is asked for.
class Site {
public:
  explicit Site(unsigned number) : left(number) {}
  bool here() { return left-- == 0; }

private:
  unsigned left;
};

bool takenOver(const Storages &storages, Value value) {
  return llvm::any_of(storages.infoOf(value).names, [](Value name) {
    return llvm::any_of(name.getUsers(), [](Operation *user) { return user->hasAttr("takes_over"); });
  });
}

/// The captured call and result that first made the memory of a value.
std::pair<int64_t, int64_t> origin(const Storages &storages, Value value) {
  const StorageInfo &info = storages.infoOf(value);
  if (!info.producer)
    return {-1, info.argument};
  return {cast<KernelOpInterface>(info.producer).getId(), cast<OpResult>(info.root).getResultNumber()};
}

Operation *freeOf(Value value) {
  for (Operation *user : value.getUsers())
    if (isa<FreeOp>(user))
      return user;
  return nullptr;
}

void dropFree(Value value) {
  auto free = cast<FreeOp>(freeOf(value));
  if (free.getTensors().size() == 1)
    return free.erase();
  free->eraseOperand(llvm::find(free.getTensors(), value) - free.getTensors().begin());
}
} // namespace

/// An operand becomes another value of the same type, made by another call.
static bool swapOperand(StepOp step, unsigned number) {
  Storages storages(step);
  Site site(number);
  SmallVector<Value> values(step.getBlock().getArguments());
  for (Operation &op : step.getBlock()) {
    if (isa<KernelOpInterface>(op))
      for (OpOperand &operand : op.getOpOperands())
        for (Value other : llvm::reverse(values)) {
          Value value = operand.get();
          if (other.getType() != value.getType() || origin(storages, other) == origin(storages, value) ||
              takenOver(storages, other) || takenOver(storages, value))
            continue;
          if (!site.here())
            break;
          operand.set(other);
          return true;
        }
    values.append(op.result_begin(), op.result_end());
  }
  return false;
}

/// An operand becomes the same result of an earlier run, whose memory is free by then.
static bool staleOperand(StepOp step, unsigned number) {
  Site site(number);
  DenseMap<std::pair<uint32_t, unsigned>, Value> earlier;
  for (Operation &op : step.getBlock()) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel)
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      auto recompute = operand.get().getDefiningOp<RecomputeOp>();
      if (!recompute)
        continue;
      Value first = earlier.lookup({recompute.getId(), cast<OpResult>(operand.get()).getResultNumber()});
      if (!first || first == operand.get() || !freeOf(first) || !freeOf(first)->isBeforeInBlock(&op) || !site.here())
        continue;
      operand.set(first);
      return true;
    }
    if (isa<CallOp>(op))
      for (OpResult result : op.getResults())
        earlier[{kernel.getId(), result.getResultNumber()}] = result;
  }
  return false;
}

static bool freeEarly(StepOp step, unsigned number) {
  Site site(number);
  for (Operation &op : step.getBlock())
    for (Value result : op.getResults()) {
      Operation *last = lastUse(result);
      if (last == &op || !freeOf(result) || !site.here())
        continue;
      dropFree(result);
      OpBuilder builder(last);
      FreeOp::create(builder, last->getLoc(), result);
      return true;
    }
  return false;
}

static bool dropOneFree(StepOp step, unsigned number) {
  Site site(number);
  for (Operation &op : step.getBlock())
    for (Value result : op.getResults())
      if (freeOf(result) && site.here()) {
        dropFree(result);
        return true;
      }
  return false;
}

static bool freeTwice(StepOp step, unsigned number) {
  Site site(number);
  for (Operation &op : step.getBlock())
    for (Value result : op.getResults())
      if (Operation *free = freeOf(result); free && site.here()) {
        OpBuilder builder(step.getContext());
        builder.setInsertionPointAfter(free);
        FreeOp::create(builder, free->getLoc(), result);
        return true;
      }
  return false;
}

/// A random recomputation draws fresh numbers.
static bool dropReplay(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<RecomputeOp>())
    if (op.getRng() && site.here()) {
      op.removeRngSlotAttr();
      return true;
    }
  return false;
}

static bool replayAnotherSlot(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<RecomputeOp>())
    if (op.getRng() && site.here()) {
      op.setRngSlot(*op.getRngSlot() + 1);
      return true;
    }
  return false;
}

/// The first run no longer saves the state that its recomputation replays.
static bool dropSave(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<CallOp>())
    if (op.getRngSlot() && site.here()) {
      op.removeRngSlotAttr();
      return true;
    }
  return false;
}

/// A random call moves before the random call that precedes it.
static bool swapDraws(StepOp step, unsigned number) {
  Site site(number);
  Operation *before = nullptr;
  for (auto op : step.getBlock().getOps<CallOp>()) {
    if (!op.getRng())
      continue;
    bool movable = before && llvm::all_of(op->getOperands(), [&](Value operand) {
                     return isa<BlockArgument>(operand) || operand.getDefiningOp()->isBeforeInBlock(before);
                   });
    if (movable && site.here()) {
      op->moveBefore(before);
      return true;
    }
    before = op;
  }
  return false;
}

/// A call with effects runs twice.
static bool repeatEffect(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<CallOp>()) {
    auto kernel = cast<KernelOpInterface>(op.getOperation());
    if (!kernel.hasEffects() || op.getTakesOver() || !site.here())
      continue;
    OpBuilder builder(step.getContext());
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op);
    if (copy->getNumResults() > 0)
      FreeOp::create(builder, op.getLoc(), copy->getResults());
    return true;
  }
  return false;
}

/// A call whose effect is all that it is there for is lost.
static bool dropEffect(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<CallOp>()) {
    bool unused = llvm::all_of(op->getUsers(), [](Operation *user) { return isa<FreeOp>(user); });
    if (!cast<KernelOpInterface>(op.getOperation()).hasEffects() || op.getTakesOver() || !unused || !site.here())
      continue;
    for (Value result : op->getResults())
      dropFree(result);
    op.erase();
    return true;
  }
  return false;
}

/// A call writes over an operand that is read later.
static bool overwriteLive(StepOp step, unsigned number) {
  Storages storages(step);
  Site site(number);
  for (auto op : step.getBlock().getOps<CallOp>()) {
    auto kernel = cast<KernelOpInterface>(op.getOperation());
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value operand = op->getOperand(i);
      std::optional<InPlaceForm> form = inPlaceForm(kernel, i);
      bool live = llvm::any_of(storages.infoOf(operand).names, [&](Value name) {
        return llvm::any_of(name.getUsers(), [&](Operation *user) { return !isa<FreeOp>(user) && op->isBeforeInBlock(user); });
      });
      if (!form || form->out || !live || !site.here())
        continue;
      Builder builder(step.getContext());
      op.setSchema(form->schema);
      op.setOverload(form->overload);
      op.setMutates({static_cast<int32_t>(i)});
      op.setAliasesAttr(builder.getArrayAttr(AliasAttr::get(step.getContext(), AliasKind::Operand, i)));
      op.setTakesOver(i);
      return true;
    }
  }
  return false;
}

static bool changeConstant(StepOp step, unsigned number) {
  Site site(number);
  for (auto kernel : step.getBlock().getOps<KernelOpInterface>()) {
    SmallVector<Attribute> args(kernel.getArgs().getValue());
    for (Attribute &arg : args) {
      auto value = dyn_cast<IntegerAttr>(arg);
      if (!value || !value.getType().isInteger(64) || !site.here())
        continue;
      arg = IntegerAttr::get(value.getType(), value.getInt() + 1);
      kernel->setAttr("args", ArrayAttr::get(step.getContext(), args));
      return true;
    }
  }
  return false;
}

/// Two gradients of one type change places.
static bool swapGradients(StepOp step, unsigned number) {
  Site site(number);
  ReturnOp ret = step.getReturn();
  for (unsigned i = 0; i < ret->getNumOperands(); ++i)
    for (unsigned j = i + 1; j < ret->getNumOperands(); ++j) {
      Value a = ret->getOperand(i), b = ret->getOperand(j);
      if (a == b || a.getType() != b.getType() || !site.here())
        continue;
      ret->setOperand(i, b);
      ret->setOperand(j, a);
      return true;
    }
  return false;
}

/// A recomputation pretends to be another call.
static bool changeNumber(StepOp step, unsigned number) {
  Site site(number);
  for (auto op : step.getBlock().getOps<RecomputeOp>())
    if (!isView(op) && site.here()) {
      op.setId(op.getId() + 1);
      return true;
    }
  return false;
}

ArrayRef<memscale::tools::Damage> memscale::tools::damages() {
  static const Damage all[] = {
      {"swap-operand", swapOperand},
      {"stale-operand", staleOperand},
      {"free-early", freeEarly},
      {"drop-free", dropOneFree},
      {"free-twice", freeTwice},
      {"drop-replay", dropReplay},
      {"replay-another-slot", replayAnotherSlot},
      {"drop-save", dropSave},
      {"swap-draws", swapDraws},
      {"repeat-effect", repeatEffect},
      {"drop-effect", dropEffect},
      {"overwrite-live", overwriteLive},
      {"change-constant", changeConstant},
      {"swap-gradients", swapGradients},
      {"change-number", changeNumber},
  };
  return all;
}

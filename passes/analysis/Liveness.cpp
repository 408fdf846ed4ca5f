//===- Liveness.cpp - Last uses and the memory of a step -------------------===//
//
// One walk with a count of live names per storage. Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/Liveness.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

Operation *memscale::passes::lastUse(Value value) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers())
    if (!isa<FreeOp>(user) && (!last || last->isBeforeInBlock(user)))
      last = user;
  return last ? last : value.getDefiningOp();
}

namespace {
class Meter {
public:
  Meter(StepOp step, const Storages &storages, const MemoryOptions &options)
      : step(step), storages(storages), options(options), names(storages.size(), 0) {}

  MemoryReport run() {
    prepare();
    for (Operation &op : step.getBlock()) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (kernel)
        allocate(kernel);
      if (auto border = dyn_cast<BorderOp>(op))
        for (Value output : border.getOutputs())
          pin(output);
      if (auto free = dyn_cast<FreeOp>(op); free && scheduled)
        for (Value value : free.getTensors())
          drop(value);
      for (Value value : dying.lookup(&op))
        drop(value);
    }
    return finish();
  }

private:
  int64_t bytes(int32_t storage) const {
    const StorageInfo &info = storages.info(storage);
    return info.host ? 0 : roundBytes(info.bytes, options.rounding_bytes);
  }

  void prepare() {
    scheduled = step.getPhase() == Phase::Scheduled;
    report.base_bytes = options.static_bytes;
    for (size_t s = 0; s < storages.size(); ++s) {
      if (storages.info(s).argument >= 0)
        report.base_bytes += bytes(s);
      else if (!scheduled)
        for (Value name : storages.info(s).names)
          dying[lastUse(name)].push_back(name);
    }
    report.peak_bytes = live = report.base_bytes;
  }

  void allocate(KernelOpInterface kernel) {
    for (OpResult result : kernel->getResults()) {
      int32_t storage = storages.of(result);
      if (kernel.getAlias(result.getResultNumber()).isFresh()) {
        live += bytes(storage);
        fresh.push_back(storage);
      }
      ++names[storage];
    }
    int64_t now = live + (options.workspace_bytes ? options.workspace_bytes(kernel) : 0);
    if (!report.peak || now > report.peak_bytes) {
      report.peak_bytes = now;
      report.peak = kernel;
    }
  }

  void pin(Value value) { ++names[storages.of(value)]; }

  void drop(Value value) {
    int32_t storage = storages.of(value);
    // Gradients die at the return, when the caller has them.
    if (--names[storage] == 0 && storages.info(storage).argument < 0 && !isa<ReturnOp>(lastUse(value)))
      live -= bytes(storage);
  }

  /// The live set of the peak, by a second walk up to it: the first one need not remember sets.
  MemoryReport finish() {
    if (!report.peak)
      return report;
    for (int32_t storage : fresh) {
      Operation *producer = storages.info(storage).producer;
      if (producer != report.peak && !producer->isBeforeInBlock(report.peak))
        continue;
      if (outlives(storage))
        report.live_at_peak.push_back(storage);
    }
    llvm::stable_sort(report.live_at_peak, [&](int32_t a, int32_t b) { return bytes(a) > bytes(b); });
    return report;
  }

  bool outlives(int32_t storage) const {
    return llvm::any_of(storages.info(storage).names, [&](Value name) {
      Operation *end = lastUse(name);
      if (end != report.peak && end->isBeforeInBlock(report.peak))
        return llvm::any_of(name.getUsers(), [](Operation *user) { return isa<BorderOp>(user); });
      return true;
    });
  }

  StepOp step;
  const Storages &storages;
  const MemoryOptions &options;
  std::vector<int32_t> names;
  std::vector<int32_t> fresh;
  DenseMap<Operation *, SmallVector<Value, 2>> dying;
  bool scheduled = false;
  int64_t live = 0;
  MemoryReport report;
};
} // namespace

MemoryReport memscale::passes::measureMemory(StepOp step, const Storages &storages, const MemoryOptions &options) {
  return Meter(step, storages, options).run();
}

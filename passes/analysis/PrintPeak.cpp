//===- PrintPeak.cpp - The peak of a step as a remark ----------------------===//
//
// Needs a verified step, changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/analysis/Liveness.h"

namespace memscale::passes {
#define GEN_PASS_DEF_PRINTPEAK
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

static std::string nameOf(Operation *op) {
  auto kernel = cast<KernelOpInterface>(op);
  std::string text =
      (isa<RecomputeOp>(op) ? "recompute " : "call ") + std::to_string(kernel.getId()) + " " + kernel.getSchema().str();
  return kernel.getOverload().empty() ? text : text + "." + kernel.getOverload().str();
}

namespace {
struct PrintPeak : memscale::passes::impl::PrintPeakBase<PrintPeak> {
  using PrintPeakBase::PrintPeakBase;

  void runOnOperation() override {
    StepOp step = getOperation();
    if (step.getReference())
      return;
    Storages storages(step);
    MemoryReport report = measureMemory(step, storages, {roundingBytes, 0, nullptr});
    InFlightDiagnostic remark = emitRemark(report.peak ? report.peak->getLoc() : step.getLoc());
    remark << "peak " << report.peak_bytes << " bytes";
    if (report.peak)
      remark << " at " << nameOf(report.peak);
    remark << ", of which " << report.base_bytes << " are arguments";
    const char *separator = "; live: ";
    for (int32_t storage : report.live_at_peak) {
      const StorageInfo &info = storages.info(storage);
      remark << separator << roundBytes(info.bytes, roundingBytes) << " by " << nameOf(info.producer);
      separator = ", ";
    }
    markAllAnalysesPreserved();
  }
};
} // namespace

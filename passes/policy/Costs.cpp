//===- Costs.cpp - Costs of kernels from a target profile ------------------===//
#include "passes/policy/Costs.h"
#include "passes/analysis/Storages.h"
using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;
FailureOr<CostModel> memscale::passes::loadCostModel(StepOp step, const std::string &profile) {
  CostModel model;
  model.time_us = [](KernelOpInterface kernel) {
    double bytes = 0;
    for (Value v : kernel->getOperands()) bytes += cast<StridedTensorType>(v.getType()).getNumElements() * cast<StridedTensorType>(v.getType()).getElementBytes();
    for (Value v : kernel->getResults()) bytes += cast<StridedTensorType>(v.getType()).getNumElements() * cast<StridedTensorType>(v.getType()).getElementBytes();
    return 1.0 + bytes / 1e4;
  };
  model.workspace_bytes = [](KernelOpInterface) -> int64_t { return 0; };
  return model;
}

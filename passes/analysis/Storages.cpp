//===- Storages.cpp - Which values share memory ----------------------------===//
//
// One walk over the step: fresh results open a storage, every other result
// joins its source's. Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/Storages.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

Storages::Storages(StepOp step) {
  auto open = [&](Value root, Operation *producer, int32_t argument, int64_t bytes) {
    StorageInfo info;
    info.root = root;
    info.producer = producer;
    info.argument = argument;
    info.bytes = bytes;
    info.host = cast<StridedTensorType>(root.getType()).getHost();
    storages.push_back(std::move(info));
    return static_cast<int32_t>(storages.size()) - 1;
  };
  auto join = [&](Value value, int32_t storage) {
    index[value] = storage;
    storages[storage].names.push_back(value);
  };
  for (BlockArgument argument : step.getBlock().getArguments()) {
    ArgumentAttr info = step.getArgumentInfo(argument.getArgNumber());
    bool first = info.getStorage() == argument.getArgNumber();
    join(argument, first ? open(argument, nullptr, argument.getArgNumber(), info.getBytes())
                         : of(step.getBlock().getArgument(info.getStorage())));
  }
  for (Operation &op : step.getBlock()) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel)
      continue;
    for (OpResult result : op.getResults()) {
      AliasAttr alias = kernel.getAlias(result.getResultNumber());
      join(result,
           alias.isFresh() ? open(result, &op, -1, alias.getValue()) : of(kernel.getAliasSource(result.getResultNumber())));
    }
  }
}

//===- AssignBlocks.cpp - Repeated blocks from module paths ----------------===//
//
// Sets block_number on calls. Needs locations, destroys nothing but earlier
// block numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace memscale::passes {
#define GEN_PASS_DEF_ASSIGNBLOCKS
#include "Passes.h.inc"
} // namespace memscale::passes

using namespace mlir;
using namespace memscale::ir;

/// "h.3.attn" → "h.3"; empty without a numbered component.
static StringRef blockOf(StringRef path) {
  size_t begin = 0;
  while (begin < path.size()) {
    size_t end = std::min(path.find('.', begin), path.size());
    StringRef component = path.slice(begin, end);
    if (!component.empty() && llvm::all_of(component, llvm::isDigit))
      return path.take_front(end);
    begin = end + 1;
  }
  return {};
}

namespace {
struct AssignBlocks : memscale::passes::impl::AssignBlocksBase<AssignBlocks> {
  void runOnOperation() override {
    if (getOperation().getReference())
      return;
    Builder builder(&getContext());
    llvm::StringMap<int32_t> numbers;
    for (auto kernel : getOperation().getBlock().getOps<KernelOpInterface>()) {
      StringRef block = blockOf(getSourceLocation(kernel.getLoc()).modulePath);
      if (block.empty()) {
        kernel->removeAttr("block_number");
        continue;
      }
      int32_t number = numbers.try_emplace(block, numbers.size()).first->second;
      kernel->setAttr("block_number", builder.getI32IntegerAttr(number));
    }
    numBlocks += numbers.size();
  }
};
} // namespace

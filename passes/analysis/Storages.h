//===- Storages.h - Which values share memory -------------------*- C++ -*-===//
//
// Resolves names to the memory behind them. Needs a verified step, changes
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_ANALYSIS_STORAGES_H
#define MEMSCALE_PASSES_ANALYSIS_STORAGES_H

#include "ir/Memscale.h"

#include "llvm/ADT/DenseMap.h"

namespace memscale::passes {

/// One block of memory: an argument's, or one that a kernel allocates.
struct StorageInfo {
  mlir::Value root;                    // the argument or result that first names it
  mlir::Operation *producer = nullptr; // null for arguments
  int32_t argument = -1;               // position of the first argument with this memory; -1 if a kernel makes it
  int64_t bytes = 0;                   // as asked of the allocator
  bool host = false;
  llvm::SmallVector<mlir::Value, 2> names; // every value that shows it, in order of definition
};

class Storages {
public:
  explicit Storages(ir::StepOp step);

  int32_t of(mlir::Value value) const { return index.lookup(value); }
  const StorageInfo &info(int32_t storage) const { return storages[storage]; }
  const StorageInfo &infoOf(mlir::Value value) const { return storages[of(value)]; }
  size_t size() const { return storages.size(); }

private:
  std::vector<StorageInfo> storages;
  llvm::DenseMap<mlir::Value, int32_t> index;
};

/// `bytes` as an allocator hands them out whose blocks are multiples of `rounding_bytes`.
inline int64_t roundBytes(int64_t bytes, int64_t rounding_bytes) {
  return rounding_bytes <= 1 ? bytes : (bytes + rounding_bytes - 1) / rounding_bytes * rounding_bytes;
}

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_ANALYSIS_STORAGES_H

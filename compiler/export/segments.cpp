// Cuts at changes of the block, before the recomputations that the next backward call needs. Needs a scheduled step; destroys
// nothing.
#include "compiler/export/segments.h"

#include <algorithm>

namespace memscale::exporter {
namespace {

constexpr size_t kMaxGradients = 16;  // of a segment, where no block says where to cut
constexpr int64_t kNoBlock = -1;

class Cutter {
 public:
  Cutter(ir::StepOp step, const std::vector<HandOver>& gradients, const std::vector<ir::KernelOpInterface>& backward)
      : storages_(step), gradients_(gradients), backward_(backward) {}

  std::vector<SegmentCut> run() {
    find_completions();
    find_blocks();
    if (completion_.empty() && backward_.empty()) return {};
    cut();
    return std::move(segments_);
  }

 private:
  /// The number of the kernel behind which each gradient is complete and its memory no longer read.
  void find_completions() {
    llvm::DenseMap<mlir::Operation*, size_t> position;
    for (size_t i = 0; i < backward_.size(); ++i) position[backward_[i]] = i;
    complete_at_.resize(backward_.size());
    added_at_.resize(backward_.size());
    int32_t previous = -1;
    for (const auto& [gradient, argument] : gradients_) {
      const bool added = argument == previous;
      previous = argument;
      size_t last = added ? completion_.back() : 0;  // autograd adds in order
      const auto touch = [&](mlir::Operation* op) {
        const auto found = op ? position.find(op) : position.end();
        if (found != position.end()) last = std::max(last, found->second);
      };
      const passes::StorageInfo& info = storages_.infoOf(gradient);
      if (info.argument < 0)
        for (mlir::Value name : info.names) {
          touch(name.getDefiningOp());
          for (mlir::Operation* user : name.getUsers()) touch(user);
        }
      touch(gradient.getDefiningOp());
      completion_.push_back(last);
      if (backward_.empty()) continue;
      ++complete_at_[last];
      added_at_[last] = added_at_[last] || added;
    }
  }

  void find_blocks() {
    blocks_.assign(backward_.size(), kNoBlock);
    for (size_t i = 0; i < backward_.size(); ++i) {
      ir::KernelOpInterface kernel = backward_[i];
      if (const auto block = kernel.getBlockNumber()) blocks_[i] = *block;
      any_block_ |= kernel.getBackward() && blocks_[i] != kNoBlock;
    }
  }

  void cut() {
    size_t begin = 0, pending = 0;  // pending: where the kernels begin that the next backward call needs
    size_t gradients = 0;           // complete in [begin, pending)
    size_t counted = 0;
    int64_t block = kNoBlock;
    bool first = true;
    for (size_t i = 0; i < backward_.size(); ++i) {
      ir::KernelOpInterface kernel = backward_[i];
      if (!kernel.getBackward()) continue;
      for (; counted < pending; ++counted) gradients += complete_at_[counted];
      const bool moved = any_block_ ? blocks_[i] != block && !first : gradients >= kMaxGradients;
      if (moved && gradients > 0 && remaining(pending)) {
        close(begin, pending, block);
        begin = pending;
        gradients = 0;
      }
      first = false;
      block = blocks_[i];
      pending = i + 1;
      if (!added_at_[i] || !remaining(pending)) continue;
      close(begin, pending, block);
      begin = pending;
      counted = pending;
      gradients = 0;
    }
    close(begin, backward_.size(), block);
    for (size_t g = 0; g < completion_.size(); ++g) {
      const auto segment =
          std::find_if(segments_.begin(), segments_.end(), [&](const SegmentCut& s) { return completion_[g] < s.end; });
      (segment == segments_.end() ? segments_.back() : *segment).gradients.push_back(static_cast<int32_t>(g));
    }
  }

  /// Does a gradient become complete from `from` on?
  bool remaining(size_t from) const {
    return std::any_of(completion_.begin(), completion_.end(), [&](size_t at) { return at >= from; });
  }

  void close(size_t begin, size_t end, int64_t block) {
    SegmentCut segment{"backward." + std::to_string(segments_.size()), begin, end, {}};
    // Named by the block's module path, of which the location is a part.
    for (size_t i = begin; i < end && block != kNoBlock; ++i) {
      if (blocks_[i] != block) continue;
      segment.name = block_path(ir::getSourceLocation(backward_[i]->getLoc()).modulePath).str();
      break;
    }
    segments_.push_back(std::move(segment));
  }

  /// Up to and with the first component that is a number.
  static llvm::StringRef block_path(llvm::StringRef path) {
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      if (path.slice(begin, end).find_first_not_of("0123456789") == llvm::StringRef::npos) return path.take_front(end);
      begin = end + 1;
    }
    return path;
  }

  passes::Storages storages_;
  const std::vector<HandOver>& gradients_;
  const std::vector<ir::KernelOpInterface>& backward_;
  std::vector<size_t> completion_;   // per gradient
  std::vector<size_t> complete_at_;  // per kernel, how many gradients
  std::vector<bool> added_at_;       // per kernel: one of them is added to an earlier one
  std::vector<int64_t> blocks_;      // per kernel
  bool any_block_ = false;
  std::vector<SegmentCut> segments_;
};

}  // namespace

std::vector<HandOver> hand_overs(ir::StepOp step) {
  std::vector<HandOver> list;
  ir::ReturnOp ret = step.getReturn();
  for (auto [gradient, argument] : llvm::zip_equal(ret.getGradients(), ret.getArguments())) {
    const size_t begin = list.size();
    mlir::Value sum = gradient;
    while (auto kernel = mlir::dyn_cast_if_present<ir::KernelOpInterface>(sum.getDefiningOp())) {
      if (!kernel.getAccumulation()) break;
      list.push_back({kernel->getOperand(1), argument});
      sum = kernel->getOperand(0);
    }
    list.push_back({sum, argument});
    std::reverse(list.begin() + begin, list.end());
  }
  return list;
}

std::vector<SegmentCut> cut_segments(ir::StepOp step, const std::vector<HandOver>& gradients,
                                     const std::vector<ir::KernelOpInterface>& backward) {
  return Cutter(step, gradients, backward).run();
}

}  // namespace memscale::exporter

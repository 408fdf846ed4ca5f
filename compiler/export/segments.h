// Where backward is cut into autograd nodes.
#pragma once

#include <string>
#include <vector>

#include "passes/analysis/Storages.h"

namespace memscale::exporter {

/// Instructions [begin, end) of backward, then the gradients that are complete: positions in the operands of memscale.return.
struct SegmentCut {
  std::string name;
  size_t begin = 0, end = 0;
  std::vector<int32_t> gradients;
};

/// One segment per repeated block, as block numbers have it; without any, segments of at most kMaxGradients gradients. Every segment hands
/// over at least one gradient, in the segment where its memory is used for the last time. `backward` are the kernels behind the border.
std::vector<SegmentCut> cut_segments(ir::StepOp step, const std::vector<ir::KernelOpInterface>& backward);

}  // namespace memscale::exporter

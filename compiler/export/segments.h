// Where backward is cut into autograd nodes.
#pragma once

#include <string>
#include <vector>

#include "passes/analysis/Storages.h"

namespace memscale::exporter {

/// A tensor that backward gives to one argument: its gradient, or one of those that autograd adds up.
struct HandOver {
  mlir::Value value;
  int32_t argument;
};

/// In the order of memscale.return, the addends of an accumulated gradient in the order in which autograd adds them.
std::vector<HandOver> hand_overs(ir::StepOp step);

/// Instructions [begin, end) of backward, then what is handed over, as positions in the list of hand-overs.
struct SegmentCut {
  std::string name;
  size_t begin = 0, end = 0;
  std::vector<int32_t> gradients;
};

/// One segment per repeated block, as block numbers have it; without any, segments of at most kMaxGradients gradients; and one
/// behind each tensor that is added to an earlier gradient, so that it lives no longer than in eager. Every segment hands over
/// something, in the segment where its memory is used for the last time. `backward` are the kernels behind the border that run.
std::vector<SegmentCut> cut_segments(ir::StepOp step, const std::vector<HandOver>& gradients,
                                     const std::vector<ir::KernelOpInterface>& backward);

}  // namespace memscale::exporter

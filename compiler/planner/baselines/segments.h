// The plans that others would make, for comparison and as a net under our own: each is legal and verified like ours.
//
// Segment plans keep what crosses a border between segments of the forward ops and rebuild the rest of a segment in one go at its
// first need in the backward pass, as torch.utils.checkpoint does. Time: what is rerun; memory: whatever comes out.
#pragma once

#include <vector>

#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

/// Every op once, eager's order. O(n).
Plan save_all(const Tables& tables);

/// Segments are the block hints of the forward ops; without hints as many segments as the square root of the number of forward
/// ops.
Plan full_recompute(const Tables& tables);

/// Chen et al. 2016 (arXiv:1604.06174): about sqrt(n) segments of equal length.
Plan every_sqrt_n(const Tables& tables);

/// Chen et al.'s greedy: segments by stored bytes, the threshold searched for least peak.
Plan chen_greedy(const Tables& tables);

/// The plan of any segmentation of the forward ops: segment[i] for i < border, -1: its storages are kept.
Plan segment_plan(const Tables& tables, const std::vector<int32_t>& segment, const char* policy);

}  // namespace memscale::planner

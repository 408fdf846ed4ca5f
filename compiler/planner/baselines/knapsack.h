// What torch.compile does with `activation_memory_budget`: a knapsack over activations decides what may be computed again in the
// backward pass, a minimum cut then decides what is saved (torch/_functorch/partitioners.py, choose_saved_values_set and
// solve_min_cut; _activation_checkpointing/knapsack.py; PyTorch 2.11). It counts saved bytes, not the peak.
//
// What is left out, because it speaks of fused kernels: views, the bans for fusion (long chains, far uses, materialized values,
// the allow list) and the doubled price of values that fusion would not write. Times stand where torch counts FLOPs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/planner/plan.h"
#include "compiler/planner/tables.h"

namespace memscale::planner {

enum class KnapsackSolver : uint8_t {
  kDp,      // quantized dynamic program, torch's default
  kGreedy,  // by time per byte
};

enum class KnapsackItems : uint8_t {
  kAsTorch,  // matrix products, attention, random ops, reductions, ops that are not ATen's; the rest is free to run again
  kAll,      // every op that may run again: what the method can do where no kernel is fused
};

struct KnapsackOptions {
  KnapsackSolver solver = KnapsackSolver::kDp;
  KnapsackItems items = KnapsackItems::kAsTorch;
};

struct SavedBytesPlan {
  Plan plan;
  double share = 0;         // of the items' bytes that the knapsack may save
  int64_t saved_bytes = 0;  // held from the forward to the backward pass, kept and resident storages left out
};

/// The plan for one setting of the knob, 0 to 1. O(ops) and a minimum cut.
SavedBytesPlan plan_by_saved_bytes(const Tables& tables, double share, const KnapsackOptions& options);

/// The knob says nothing of the peak, so this tries 33 settings and takes the fastest plan whose peak is within the budget; if
/// none is, the plan of the lowest peak.
SavedBytesPlan knapsack(const Tables& tables, int64_t budget_bytes, const KnapsackOptions& options);

/// The plan that holds exactly `saved` of the forward pass's storages for the backward pass and computes the others again, each
/// op at most once, just before the first backward op that needs it. Whatever `saved` leaves out must be rebuildable from it.
Plan plan_with_saved(const Tables& tables, const std::vector<char>& saved, const char* policy);

}  // namespace memscale::planner

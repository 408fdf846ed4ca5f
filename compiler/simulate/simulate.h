// Exact storage-level memory of a sequence of runs: what is live while each op runs, the peak, what stands at the peak.
//
// Needs a problem that passes Problem::check(). Changes nothing. Rules of the machine:
//   - outputs and the workspace are allocated before dead inputs are freed;
//   - an instance of a storage lives from the run that produces it to its last read, or to the end for the first instance of a
//     `keep` storage; one that nothing reads is freed after its run;
//   - resident storages and static_bytes are there all the time;
//   - a run with an in-place candidate gives the input's block to the output, so the two are counted once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/planner/plan.h"
#include "compiler/planner/problem.h"
#include "compiler/support/error.h"

namespace memscale::simulate {

struct Report {
  int64_t peak_bytes = 0;
  int32_t peak_run = -1;  // first run that reaches the peak; -1: no run
  double time_us = 0;
  std::vector<int64_t> curve;         // per run, bytes while it runs
  std::vector<int64_t> after;         // per run, bytes once its dead storages are freed
  std::vector<int32_t> live_at_peak;  // storages with a live instance at the peak, largest first; resident ones not listed
};

/// Bytes that are allocated before the first run and after the last: static and resident.
int64_t base_bytes(const planner::Problem& problem);

/// O(reads + writes). An error names the run that reads a storage without an instance, or an illegal in-place run.
Expected<Report> simulate(const planner::Problem& problem, std::span<const planner::Run> runs);

/// Sets the in-place candidate of every run: of the legal ones that which saves most bytes, the first of the list at a tie.
/// Legal: the run is the last read of the input's instance, which is neither resident, nor kept, nor mutated by the same op.
void assign_inplace(const planner::Problem& problem, std::vector<planner::Run>& runs);

enum class InPlaceUse { kBest, kNone };

/// Every op once in eager's order.
std::vector<planner::Run> save_all(const planner::Problem& problem, InPlaceUse use = InPlaceUse::kBest);

/// The peak of eager itself: save_all plus eager_extra_bytes.
int64_t eager_peak_bytes(const planner::Problem& problem);

/// A plan out of legal runs: peak, times and the policy's name filled in, lower_bound_bytes left at 0.
Expected<planner::Plan> make_plan(const planner::Problem& problem, std::vector<planner::Run> runs, const char* policy);

}  // namespace memscale::simulate

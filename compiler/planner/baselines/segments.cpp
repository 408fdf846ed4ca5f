// See segments.h.
#include "compiler/planner/baselines/segments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/planner/evict.h"
#include "compiler/planner/sequence.h"
#include "compiler/simulate/simulate.h"

namespace memscale::planner {
namespace {

std::vector<int32_t> equal_segments(int32_t border) {
  std::vector<int32_t> segment(border);
  const auto count = std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(border))));
  for (int32_t i = 0; i < border; ++i) segment[i] = static_cast<int32_t>(int64_t{i} * count / std::max(border, 1));
  return segment;
}

}  // namespace

Plan save_all(const Tables& tables) {
  auto plan = simulate::make_plan(tables.problem(), simulate::save_all(tables.problem()), "save-all");
  if (!plan) return {};  // check() rules this out
  plan->lower_bound_bytes = tables.lower_bound_bytes();
  return std::move(*plan);
}

Plan segment_plan(const Tables& tables, const std::vector<int32_t>& segment, const char* policy) {
  const Problem& p = tables.problem();
  const int32_t border = p.border;
  std::vector<std::vector<int32_t>> drop_after(p.ops.size());
  std::vector<int32_t> together(p.storages.size(), -1), segment_end(border, -1);
  int32_t last = -1;
  for (int32_t i = border; i-- > 0;) {
    if (i + 1 == border || segment[i] != segment[i + 1]) last = i;
    segment_end[i] = last;
  }
  for (int32_t i = 0; i < border; ++i) {
    if (segment[i] < 0) continue;
    for (int32_t s : p.ops[i].outputs) {
      const auto uses = tables.uses(s);
      if (tables.pinned(s) || uses.empty() || uses.back() < border) continue;
      const bool crosses = std::any_of(uses.begin(), uses.end(), [&](int32_t u) { return u < border && u > segment_end[i]; });
      if (crosses) continue;
      together[s] = segment_end[i];
      drop_after[segment_end[i]].push_back(s);
    }
  }
  Evictor evictor(tables);
  Limits limits;
  limits.runs = 8 * static_cast<int64_t>(p.ops.size()) + 1000;
  if (evictor.run_fixed(drop_after, together, limits) != PassEnd::kDone) return save_all(tables);
  const std::vector<int32_t> ops = Sequence(tables, evictor.runs()).ops();
  std::vector<Run> runs(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) runs[i].op = ops[i];
  simulate::assign_inplace(p, runs);
  auto plan = simulate::make_plan(p, std::move(runs), policy);
  if (!plan) return save_all(tables);
  plan->lower_bound_bytes = tables.lower_bound_bytes();
  return std::move(*plan);
}

Plan full_recompute(const Tables& tables) {
  const Problem& p = tables.problem();
  std::vector<int32_t> segment(p.border, -1);
  bool hints = false;
  for (int32_t i = 0; i < p.border; ++i) {
    segment[i] = p.ops[i].block;
    hints = hints || segment[i] >= 0;
  }
  return segment_plan(tables, hints ? segment : equal_segments(p.border), "full-recompute");
}

Plan every_sqrt_n(const Tables& tables) { return segment_plan(tables, equal_segments(tables.problem().border), "sqrt-n"); }

Plan chen_greedy(const Tables& tables) {
  const Problem& p = tables.problem();
  std::vector<int64_t> stored(p.border, 0);
  int64_t total = 0, largest = 0;
  for (int32_t i = 0; i < p.border; ++i) {
    for (int32_t s : p.ops[i].outputs)
      if (!tables.pinned(s) && !tables.uses(s).empty() && tables.uses(s).back() >= p.border) stored[i] += p.storages[s].bytes;
    total += stored[i];
    largest = std::max(largest, stored[i]);
  }
  auto cut = [&](int64_t threshold) {
    std::vector<int32_t> segment(p.border, 0);
    int64_t sum = 0;
    int32_t number = 0;
    for (int32_t i = 0; i < p.border; ++i) {
      if (sum > 0 && sum + stored[i] > threshold) {
        ++number;
        sum = 0;
      }
      sum += stored[i];
      segment[i] = number;
    }
    return segment;
  };
  Plan best = segment_plan(tables, cut(total), "chen-greedy");
  constexpr int kSteps = 12;
  for (int k = 1; k <= kSteps; ++k) {
    const double share = static_cast<double>(k) / (kSteps + 1);
    const auto threshold = static_cast<int64_t>(std::pow(static_cast<double>(std::max<int64_t>(largest, 1)), 1 - share) *
                                                std::pow(static_cast<double>(std::max<int64_t>(total, 1)), share));
    Plan plan = segment_plan(tables, cut(threshold), "chen-greedy");
    if (plan.peak_bytes < best.peak_bytes || (plan.peak_bytes == best.peak_bytes && plan.time_us < best.time_us))
      best = std::move(plan);
  }
  return best;
}

}  // namespace memscale::planner

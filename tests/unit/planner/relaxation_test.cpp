// The Lagrangian bound: by hand, against the exhaustive optimum, and against plans of larger problems.
#include "compiler/planner/relaxation.h"

#include <gtest/gtest.h>

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/solve.h"
#include "optimum.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

TEST(Relaxation, ByHand) {
  // The chain of three (see Optimum.ByHand): 7 ops of 1 us, eager peaks at 500, at 400 one op must run again.
  // At 500 prices gain nothing. At 400 exactly one storage of 100 bytes must be away at the peak: holding it costs more than its
  // rerun of 1 us from a price of 1/100 us a byte on, so the bound reaches 8 us.
  const Problem p = testing::chain(3, 100);
  const Tables tables(p);
  EXPECT_DOUBLE_EQ(relax(tables, 500, 7, 100).bound_us, 7);
  EXPECT_NEAR(relax(tables, 400, 8, 400).bound_us, 8, 0.05);
  EXPECT_LE(relax(tables, 400, 8, 400).bound_us, 8 + 1e-9);
}

TEST(Relaxation, NeverAboveTheOptimum) {
  int compared = 0, raised = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 4 + static_cast<int32_t>(seed % 3);
    options.max_bytes = 1000;
    const Problem p = generate(options);
    int droppable = 0;
    for (const Storage& s : p.storages) droppable += !s.resident && !s.keep;
    if (droppable > 16) continue;
    const Tables tables(p);
    const int64_t low = tables.order_floor().bytes, high = save_all(tables).peak_bytes;
    for (int64_t share : {10, 40, 70}) {
      const int64_t budget = low + (high - low) * share / 100;
      const auto least = testing::optimum_us(p, budget);
      if (!least) continue;
      const double bound = relax(tables, budget, *least, 200).bound_us;
      EXPECT_LE(bound, *least * (1 + 1e-9)) << "seed " << seed << " share " << share;
      ++compared;
      raised += bound > save_all(tables).time_us * (1 + 1e-9);
    }
  }
  EXPECT_GT(compared, 80);
  EXPECT_GT(raised, compared / 4) << "a bound that is always the base time says nothing";
}

TEST(Relaxation, NeverAboveAPlan) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 80;
    options.two_outputs = 0.4;
    const Problem p = generate(options);
    const Tables tables(p);
    const int64_t low = tables.order_floor().bytes, high = save_all(tables).peak_bytes;
    for (int64_t share : {30, 60, 90}) {
      Options o;
      o.budget_bytes = low + (high - low) * share / 100;
      const SolveResult result = solve(p, o);
      if (!result.feasible) continue;
      EXPECT_LE(result.lower_bound_us, result.plan.time_us * (1 + 1e-9)) << "seed " << seed << " share " << share;
      EXPECT_GE(result.lower_bound_us, result.plan.base_time_us * (1 - 1e-9));
    }
  }
}

}  // namespace
}  // namespace memscale::planner

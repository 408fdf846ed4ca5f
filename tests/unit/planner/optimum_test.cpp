// Against the exhaustive optimum on small random problems: how far off, how often a plan is missed.
#include "optimum.h"

#include <gtest/gtest.h>

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/solve.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

TEST(Optimum, ByHand) {
  // The chain of three: 500 is eager's peak. At 400 one of a1, a2 must be made anew: 7 + 1 runs of 1 us.
  // At 300 nothing helps: op3 needs x, a3 and g3, and op4 g3, g2 and a2 beside x.
  const Problem p = testing::chain(3, 100);
  EXPECT_EQ(testing::optimum_us(p, 500), 7);
  EXPECT_EQ(testing::optimum_us(p, 499), 8);
  EXPECT_EQ(testing::optimum_us(p, 400), 8);
  EXPECT_EQ(testing::optimum_us(p, 399), std::nullopt);
}

TEST(Optimum, MeanGapOverSmallRandomProblems) {
  int compared = 0, missed = 0, feasible = 0;
  double gap = 0, worst = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 4 + static_cast<int32_t>(seed % 3);
    options.fixed = 0;
    options.max_bytes = 1000;
    const Problem p = generate(options);
    ASSERT_TRUE(p.check().empty());
    int droppable = 0;
    for (const Storage& s : p.storages) droppable += !s.resident && !s.keep;
    if (droppable > 16) continue;
    const Tables tables(p);
    const int64_t low = tables.order_floor().bytes, high = save_all(tables).peak_bytes;
    for (int64_t share : {20, 50, 80}) {
      const int64_t budget = low + (high - low) * share / 100;
      const auto least = testing::optimum_us(p, budget);
      Options o;
      o.budget_bytes = budget;
      o.search_rounds = 64;
      const SolveResult result = solve(p, o);
      EXPECT_EQ(verify(p, result.plan), std::vector<std::string>{}) << "seed " << seed << " share " << share;
      if (result.feasible) {
        ASSERT_TRUE(least.has_value()) << "seed " << seed << ": a plan within a budget that has none";
        EXPECT_LE(result.plan.peak_bytes, budget);
        EXPECT_GE(result.plan.time_us, *least - 1e-9) << "seed " << seed << ": faster than the optimum";
      }
      if (!least) continue;
      ++feasible;
      if (!result.feasible) {
        ++missed;
        continue;
      }
      const double excess = result.plan.time_us / *least - 1;
      gap += excess;
      worst = std::max(worst, excess);
      ++compared;
    }
  }
  RecordProperty("mean_gap_percent", std::to_string(100 * gap / compared));
  ASSERT_GT(compared, 100);
  EXPECT_LT(gap / compared, 0.005) << "mean over " << compared << ", worst " << worst;
  EXPECT_LT(worst, 0.10) << "mean " << gap / compared;
  EXPECT_LE(missed, feasible / 20) << "of " << feasible;
}

}  // namespace
}  // namespace memscale::planner

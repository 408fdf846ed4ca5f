// Baselines: legal, and where the textbook says what they cost, they cost that.
#include "compiler/planner/baselines/segments.h"

#include <gtest/gtest.h>

#include "compiler/planner/generate.h"
#include "compiler/simulate/simulate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

TEST(Baselines, SaveAll) {
  const Problem p = testing::chain(16, 100);
  const Plan plan = save_all(Tables(p));
  EXPECT_EQ(plan.peak_bytes, 100 + 16 * 100 + 100);  // x, a1 .. a16, g16
  EXPECT_EQ(plan.time_us, 33);
  EXPECT_TRUE(verify(p, plan).empty());
}

TEST(Baselines, SqrtOfAChain) {
  // 16 forward ops in 4 segments of 4: a4 a8 a12 a16 stay (a16 is read across no border, but it is the last of its segment and
  // dropped and made anew). Each segment's other activations come back once: 3 reruns in segments 1 to 3 (a4k survives), 4 in the
  // last.
  const Problem p = testing::chain(16, 100);
  const Plan plan = every_sqrt_n(Tables(p));
  EXPECT_TRUE(verify(p, plan).empty());
  EXPECT_EQ(plan.time_us, 33 + 3 + 3 + 3 + 4);
  // Peak: x, a4 a8 a12, the last segment's four, g16.
  EXPECT_EQ(plan.peak_bytes, 100 * (1 + 3 + 4 + 1));
}

TEST(Baselines, FullRecomputeFollowsTheHints) {
  Problem p = testing::chain(12, 100);
  for (int i = 0; i < 12; ++i) p.ops[i].block = i / 6;  // two blocks of six
  const Plan plan = full_recompute(Tables(p));
  EXPECT_TRUE(verify(p, plan).empty());
  EXPECT_EQ(plan.time_us, 25 + 5 + 6);
  EXPECT_EQ(plan.peak_bytes, 100 * (1 + 1 + 6 + 1));  // x, a6, a7 .. a12, g12
}

TEST(Baselines, AllLegalOnRandomProblems) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 30;
    options.block_length = seed % 2 ? 5 : 0;
    options.fixed = 0.1;
    const Problem p = generate(options);
    const Tables tables(p);
    const Plan base = save_all(tables);
    for (const Plan& plan : {base, full_recompute(tables), every_sqrt_n(tables), chen_greedy(tables)}) {
      EXPECT_EQ(verify(p, plan), std::vector<std::string>{}) << plan.policy << " seed " << seed;
      EXPECT_GE(plan.time_us, base.time_us);
      EXPECT_GE(plan.peak_bytes, tables.lower_bound_bytes());
      EXPECT_LE(plan.time_us, 2.2 * base.time_us) << plan.policy << " seed " << seed;
    }
  }
}

TEST(Baselines, GreedyBeatsNothingOnATransformer) {
  const Problem p = generate_transformer(12, 1 << 16);
  const Tables tables(p);
  EXPECT_LT(chen_greedy(tables).peak_bytes, save_all(tables).peak_bytes / 2);
  EXPECT_LT(full_recompute(tables).peak_bytes, save_all(tables).peak_bytes / 2);
}

TEST(Baselines, InferenceHasNothingToRebuild) {
  testing::Make m;
  const int32_t x = m.resident(8), a = m.storage(8);
  m.op({x}, {a});
  m.op({a}, {m.kept(8)});
  const Tables tables(m.p);
  EXPECT_EQ(every_sqrt_n(tables).runs, simulate::save_all(m.p));
  EXPECT_EQ(full_recompute(tables).runs, simulate::save_all(m.p));
}

}  // namespace
}  // namespace memscale::planner

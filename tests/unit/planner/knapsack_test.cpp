// The saved-bytes knapsack: what it saves, what it runs again, and that it does not see the peak.
#include "compiler/planner/baselines/knapsack.h"

#include <gtest/gtest.h>

#include "compiler/planner/baselines/min_cut.h"
#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

using testing::Make;

constexpr KnapsackOptions kDpAll = {KnapsackSolver::kDp, KnapsackItems::kAll};
constexpr KnapsackOptions kGreedyAll = {KnapsackSolver::kGreedy, KnapsackItems::kAll};

std::vector<int32_t> ops(const Plan& plan) {
  std::vector<int32_t> all;
  for (const Run& r : plan.runs) all.push_back(r.op);
  return all;
}

TEST(MinCut, ByHand) {
  // 0 is the source, 3 the sink. 0-1 carries 4, 0-2 2, 1-2 1, 1-3 2, 2-3 3: the flow is 2 + 1 + 2 = 5, one of 0-1's 4 is left,
  // and the cut is 1-2, 1-3 and 0-2.
  MinCut graph(4);
  graph.add_edge(0, 1, 4);
  graph.add_edge(0, 2, 2);
  graph.add_edge(1, 2, 1);
  graph.add_edge(1, 3, 2);
  graph.add_edge(2, 3, 3);
  EXPECT_EQ(graph.source_side(0, 3), (std::vector<char>{1, 1, 0, 0}));
}

TEST(Knapsack, TheKnobFromEndToEnd) {
  // x -> a1 -> a2 -> a3, 100 bytes and 1 us each; the backward ops are 3 to 6.
  const Problem p = testing::chain(3, 100);
  const Tables tables(p);
  const auto all = plan_by_saved_bytes(tables, 1, kDpAll);
  EXPECT_EQ(all.plan.runs, save_all(tables).runs);
  EXPECT_EQ(all.saved_bytes, 300);
  // A third holds one item; at a tie the first, a1. a2 and a3 come back for op3, and op4 finds a2 there.
  const auto third = plan_by_saved_bytes(tables, 0.34, kDpAll);
  EXPECT_EQ(ops(third.plan), (std::vector<int32_t>{0, 1, 2, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(third.saved_bytes, 100);
  // The saved bytes fall to a third, the peak does not fall: op3 sees x, a1, a2, a3 and g, as without recomputation.
  EXPECT_EQ(third.plan.peak_bytes, 500);
  EXPECT_EQ(all.plan.peak_bytes, 500);
  const auto none = plan_by_saved_bytes(tables, 0, kDpAll);
  EXPECT_EQ(ops(none.plan), (std::vector<int32_t>{0, 1, 2, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(none.saved_bytes, 0);
}

TEST(Knapsack, TheDynamicProgramBeatsGreed) {
  // Of 160 bytes 100 may be saved. By time per byte a (66/60) goes first and leaves no room: 60 bytes, b and c are run again, 100
  // us. Best is b and c: 100 bytes, a is run again, 66 us.
  Make m;
  const int32_t x = m.resident(1), a = m.storage(60), b = m.storage(50), c = m.storage(50);
  m.op({x}, {a}, 66);
  m.op({x}, {b}, 50);
  m.op({x}, {c}, 50);
  m.op({a, b, c}, {m.kept(1)}, 1, true);
  const Tables tables(m.p);
  const auto dp = plan_by_saved_bytes(tables, 0.625, kDpAll), greedy = plan_by_saved_bytes(tables, 0.625, kGreedyAll);
  EXPECT_EQ(dp.saved_bytes, 100);
  EXPECT_EQ(dp.plan.time_us, 167 + 66);
  EXPECT_EQ(greedy.saved_bytes, 60);
  EXPECT_EQ(greedy.plan.time_us, 167 + 100);
}

TEST(Knapsack, PointwiseOpsAreFreeAsInTorch) {
  // addmm -> a, relu -> r; the backward pass reads both. relu is free to run again, so a alone is saved even at the full share.
  Make m;
  const int32_t x = m.resident(1), a = m.storage(400), r = m.storage(400);
  m.op({x}, {a}, 10).name = "aten::addmm";
  m.op({a}, {r}, 2).name = "aten::relu";
  m.op({a, r}, {m.kept(1)}, 1, true);
  const Tables tables(m.p);
  const auto torch = plan_by_saved_bytes(tables, 1, {});
  EXPECT_EQ(torch.saved_bytes, 400);
  EXPECT_EQ(ops(torch.plan), (std::vector<int32_t>{0, 1, 1, 2}));
  EXPECT_EQ(plan_by_saved_bytes(tables, 1, kDpAll).saved_bytes, 800);
  EXPECT_EQ(plan_by_saved_bytes(tables, 0, {}).saved_bytes, 0);
}

TEST(Knapsack, TheCutSavesWhatIsSmall) {
  // a of 400 bytes cannot run again, s = f(a) has 10 bytes and g = h(s) 400; the backward pass reads g. With f and h free the
  // cheapest to save is s.
  Make m;
  const int32_t x = m.resident(1), a = m.storage(400), s = m.storage(10), g = m.storage(400);
  m.op({x}, {a}).recomputable = false;
  m.op({a}, {s});
  m.op({s}, {g});
  m.op({g}, {m.kept(1)}, 1, true);
  const auto plan = plan_by_saved_bytes(Tables(m.p), 0, kDpAll);
  EXPECT_EQ(plan.saved_bytes, 10);
  EXPECT_EQ(ops(plan.plan), (std::vector<int32_t>{0, 1, 2, 2, 3}));
}

TEST(Knapsack, ThousandsOfProblems) {
  int fits = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    GenerateOptions g;
    g.seed = seed;
    g.forward_ops = 4 + static_cast<int32_t>(seed % 23);
    g.fixed = seed % 3 == 0 ? 0 : 0.15;
    const Problem p = generate(g);
    const Tables tables(p);
    const Plan eager = save_all(tables);
    const int64_t floor = tables.order_floor().bytes;
    const int64_t budget = floor + (eager.peak_bytes - floor) * static_cast<int64_t>(seed % 10) / 10;
    const KnapsackOptions o{seed % 2 ? KnapsackSolver::kDp : KnapsackSolver::kGreedy,
                            seed % 5 ? KnapsackItems::kAll : KnapsackItems::kAsTorch};
    const auto result = knapsack(tables, budget, o);
    ASSERT_EQ(verify(p, result.plan), std::vector<std::string>{}) << seed;
    ASSERT_LE(result.plan.time_us, 2 * eager.time_us) << seed;  // each op once more at most
    fits += result.plan.peak_bytes <= budget;
    if (seed % 10 == 0) ASSERT_EQ(knapsack(tables, budget, o).plan.runs, result.plan.runs) << seed;
  }
  EXPECT_GT(fits, 500);
}

}  // namespace
}  // namespace memscale::planner

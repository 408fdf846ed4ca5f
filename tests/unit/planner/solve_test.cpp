// The planner: never over budget, never worse than doing nothing, proven plans, honest refusals.
#include "compiler/planner/solve.h"

#include <gtest/gtest.h>

#include <chrono>

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/json.h"
#include "compiler/simulate/simulate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

using testing::chain;
using testing::Make;

SolveResult solve_at(const Problem& p, int64_t budget, int32_t rounds = -1) {
  Options o;
  o.budget_bytes = budget;
  o.search_rounds = rounds;
  return solve(p, o);
}

void expect_proven(const Problem& p, const SolveResult& r) { EXPECT_EQ(verify(p, r.plan), std::vector<std::string>{}); }

TEST(Solve, NothingHappensWhenEagerFits) {
  const Problem p = chain(3, 100);  // peak 500
  const auto r = solve_at(p, 500);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.policy, "save-all");
  EXPECT_EQ(r.plan.runs, simulate::save_all(p));
  EXPECT_EQ(r.plan.time_us, r.plan.base_time_us);
}

TEST(Solve, OneByteLessCostsOneRun) {
  // 500 with everything kept, 400 with a1 or a2 made anew (see Optimum.ByHand).
  const Problem p = chain(3, 100);
  const auto r = solve_at(p, 499);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.time_us, 8);
  EXPECT_EQ(r.plan.peak_bytes, 400);
  expect_proven(p, r);
}

TEST(Solve, DropsTheCheapOne) {
  // The chain of four peaks at 600, in op4 and in op5. At 500 one of a1, a2 must be away in both. a1 takes 50 us, a2 1 us: a2
  // goes.
  Problem p = chain(4, 100);
  p.ops[0].time_us = 50;
  const auto r = solve_at(p, 500);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.time_us, 58 + 1);
  expect_proven(p, r);
}

TEST(Solve, DiamondSharesTheRebuiltTop) {
  // x -> a; b = f(a), c = g(a), d = h(b, c). A large op in between forces a, b and c out; both branches come back from one rerun
  // of a.
  Make m;
  const int32_t x = m.resident(1), a = m.storage(100), b = m.storage(100), c = m.storage(100), t = m.storage(1);
  m.op({x}, {a});
  m.op({a}, {b});
  m.op({a}, {c});
  m.op({x}, {t}, 1).workspace_bytes = 300;
  m.op({a, b, c, t}, {m.kept(1)}, 1, true);
  // op3 needs 1 + 1 + 300; op4 1 + 300 + 1 + 1. At 303 all of a, b, c are dropped before op3: 5 + 3 runs.
  const auto r = solve_at(m.p, 303);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.time_us, 8);
  EXPECT_EQ(r.plan.peak_bytes, 303);
  expect_proven(m.p, r);
}

TEST(Solve, MultiOutputRerunsOnce) {
  // op0 makes y and its statistics m; both are read late, a large op stands in between.
  Make k;
  const int32_t x = k.resident(1), y = k.storage(100), stat = k.storage(50), t = k.storage(1);
  k.op({x}, {y, stat});
  k.op({x}, {t}).workspace_bytes = 150;
  const int32_t u = k.storage(1);
  k.op({stat, t}, {u}, 1, true);
  k.op({y, u}, {k.kept(1)}, 1, true);
  // Everything kept: 1 + 150 + 1 + 150 = 302. At 200 op0 runs twice.
  const auto r = solve_at(k.p, 200);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.time_us, 5);
  expect_proven(k.p, r);
}

TEST(Solve, WhatCannotRunAgainStays) {
  // The chain of four at 500, where op0 updates a buffer: a1 has to stay, so a2 is made anew from it.
  Problem p = chain(4, 100);
  p.storages.push_back({"buffer", 0, Role::kBuffer, true, false});
  p.ops[0].mutates = {10};
  const auto r = solve_at(p, 500);
  ASSERT_TRUE(r.feasible);
  expect_proven(p, r);
  int first = 0, second = 0;
  for (const planner::Run& run : r.plan.runs) {
    first += run.op == 0;
    second += run.op == 1;
  }
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

TEST(Solve, ASourceIsHeldForWhatIsRebuiltFromIt) {
  // a cannot run again. b = f(a) is read late; after op1 nobody reads a in eager's order. With b dropped, a must stay instead.
  Make m;
  const int32_t x = m.resident(1), a = m.storage(10), b = m.storage(100), t = m.storage(1);
  m.op({x}, {a}).recomputable = false;
  m.op({a}, {b});
  m.op({a, b}, {t}).workspace_bytes = 100;
  const int32_t u = m.storage(1);
  m.op({a, t}, {u}).workspace_bytes = 100;
  m.op({b, u}, {m.kept(1)}, 1, true);
  // op2: 1 + 10 + 100 + 1 + 100 = 212. op3: with b 1 + 10 + 100 + 1 + 1 + 100 = 213, without b 113, then a is held till op1's
  // rerun.
  const auto r = solve_at(m.p, 212);
  ASSERT_TRUE(r.feasible);
  EXPECT_EQ(r.plan.time_us, 6);
  expect_proven(m.p, r);
}

TEST(Solve, RandomOpsMayRunAgain) {
  Problem p = chain(3, 100);
  for (int i = 0; i < 3; ++i) p.ops[i].rng = true;
  const auto r = solve_at(p, 400);
  ASSERT_TRUE(r.feasible);
  expect_proven(p, r);
}

TEST(Solve, InfeasibleNamesTheOpAndItsStorages) {
  // The largest working set of the chain: x, a, g and the next g, 400.
  const Problem p = chain(3, 100);
  const auto r = solve_at(p, 399);
  ASSERT_FALSE(r.feasible);
  EXPECT_EQ(r.lowest_peak_bytes, 400);
  EXPECT_EQ(r.floor.bytes, 400);
  EXPECT_EQ(r.floor.op, 4);
  EXPECT_EQ(r.floor_storages, (std::vector<int32_t>{2, 4, 5}));
  const std::string text = explain_infeasible(p, r);
  EXPECT_NE(text.find("op 4 (op4) needs"), std::string::npos) << text;
  EXPECT_NE(text.find("s2 "), std::string::npos) << text;
  expect_proven(p, r);  // the plan of the lowest peak is a plan
}

TEST(Solve, UnknownPolicy) {
  Options o;
  o.policy = "guess";
  o.budget_bytes = 1 << 30;
  const auto r = solve(chain(3, 100), o);
  EXPECT_FALSE(r.feasible);
  EXPECT_TRUE(r.plan.runs.empty());
}

TEST(Solve, EveryPolicyAloneKeepsItsWord) {
  GenerateOptions options;
  options.forward_ops = 60;
  options.seed = 3;
  const Problem p = generate(options);
  const Tables tables(p);
  const int64_t peak = save_all(tables).peak_bytes, floor = tables.order_floor().bytes;
  int fitting = 0;
  for (const std::string& policy : policies()) {
    Options o;
    o.policy = policy;
    o.budget_bytes = (peak + floor) / 2;
    const auto r = solve(p, o);
    EXPECT_TRUE(verify(p, r.plan).empty()) << policy;
    if (r.feasible) EXPECT_LE(r.plan.peak_bytes, o.budget_bytes) << policy;
    fitting += r.feasible;
  }
  EXPECT_GE(fitting, 6);
}

class RandomProblems : public ::testing::TestWithParam<int> {};

TEST_P(RandomProblems, ProvenWithinBudgetAndNoWorseThanBaselines) {
  GenerateOptions options;
  options.seed = static_cast<uint64_t>(GetParam());
  options.forward_ops = 10 + GetParam() * 7 % 90;
  options.block_length = GetParam() % 2 ? 8 : 0;
  options.fixed = GetParam() % 3 ? 0.05 : 0;
  const Problem p = generate(options);
  ASSERT_TRUE(p.check().empty());
  const Tables tables(p);
  const int64_t peak = save_all(tables).peak_bytes, floor = tables.order_floor().bytes;
  double last = 0;
  for (int share = 100; share >= 10; share -= 15) {
    const auto r = solve_at(p, floor + (peak - floor) * share / 100);
    expect_proven(p, r);
    EXPECT_GE(r.plan.peak_bytes, tables.lower_bound_bytes());
    if (!r.feasible) {
      EXPECT_GT(r.lowest_peak_bytes, r.budget_bytes);
      break;
    }
    EXPECT_LE(r.plan.peak_bytes, r.budget_bytes) << share;
    EXPECT_LE(r.plan.peak_bytes, peak);
    for (const Baseline& b : r.baselines)
      if (b.fits) EXPECT_LE(r.plan.time_us, b.time_us + 1e-6) << b.policy;
    last = std::max(last, r.plan.time_us / r.plan.base_time_us);
  }
  EXPECT_LT(last, 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems, ::testing::Range(1, 41));

TEST(Solve, Deterministic) {
  GenerateOptions options;
  options.forward_ops = 150;
  options.seed = 11;
  const Problem p = generate(options);
  const Tables tables(p);
  const int64_t budget = (save_all(tables).peak_bytes + tables.order_floor().bytes) / 2;
  EXPECT_EQ(write_plan(solve_at(p, budget, 8).plan), write_plan(solve_at(p, budget, 8).plan));
}

TEST(Solve, SearchNeverLoses) {
  GenerateOptions options;
  options.forward_ops = 60;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    options.seed = seed;
    const Problem p = generate(options);
    const Tables tables(p);
    const int64_t budget = (save_all(tables).peak_bytes + tables.order_floor().bytes) / 2;
    const auto plain = solve_at(p, budget, 0), searched = solve_at(p, budget, 30);
    ASSERT_TRUE(plain.feasible);
    EXPECT_LE(searched.plan.time_us, plain.plan.time_us);
    expect_proven(p, searched);
  }
}

TEST(Solve, FindLowestIsFeasibleAgain) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 40;
    const Problem p = generate(options);
    const Plan lowest = find_lowest(p);
    EXPECT_TRUE(verify(p, lowest).empty());
    const auto r = solve_at(p, lowest.peak_bytes);
    EXPECT_TRUE(r.feasible) << seed;
    EXPECT_LE(r.plan.peak_bytes, lowest.peak_bytes);
  }
}

TEST(Solve, TransformersReachTwentiethOfTheSpan) {
  // Whatever is 0.05 of the peak above the largest working set must be reachable, at less than one extra forward pass (1/3 of the
  // time).
  const Problem p = generate_transformer(24, 1 << 20);
  const Tables tables(p);
  const int64_t peak = save_all(tables).peak_bytes;
  const auto r = solve_at(p, tables.order_floor().bytes + peak / 20);
  ASSERT_TRUE(r.feasible);
  EXPECT_LT(r.plan.time_us, 1.3 * r.plan.base_time_us);
  expect_proven(p, r);
}

TEST(Solve, TenThousandOpsInSeconds) {
  const Problem p = generate_transformer(220, 1 << 20);
  ASSERT_GT(p.ops.size(), 10000u);
  const Tables tables(p);
  const int64_t peak = save_all(tables).peak_bytes, floor = tables.order_floor().bytes;
  const auto begin = std::chrono::steady_clock::now();
  const auto r = solve_at(p, floor + (peak - floor) / 3);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(r.feasible);
  expect_proven(p, r);
  EXPECT_LT(seconds, 20) << "2 s on an idle machine in a release build; this bound finds quadratic growth";
  EXPECT_LT(r.plan.time_us, 1.15 * r.plan.base_time_us);
}

TEST(Solve, DeepChainNeedsNoStack) {
  // 30,000 ops in a row at a budget of a few: chains of thousands of reruns, on explicit stacks.
  const Problem p = chain(30000, 1000);
  const Tables tables(p);
  const auto r = solve_at(p, tables.order_floor().bytes + 1000 * 400);
  ASSERT_TRUE(r.feasible);
  EXPECT_LE(r.plan.peak_bytes, r.budget_bytes);
  expect_proven(p, r);
}

}  // namespace
}  // namespace memscale::planner

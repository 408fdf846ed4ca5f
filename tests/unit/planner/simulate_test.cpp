// The simulator's arithmetic, by hand.
#include "compiler/simulate/simulate.h"

#include <gtest/gtest.h>

#include "compiler/planner/generate.h"
#include "small_problems.h"

namespace memscale::simulate {
namespace {

using planner::Problem;
using planner::Run;
using planner::testing::chain;
using planner::testing::Make;

std::vector<Run> order(std::vector<int32_t> ops) {
  std::vector<planner::Run> runs;
  for (int32_t op : ops) runs.push_back({op, -1});
  return runs;
}

TEST(Simulate, ChainOfThree) {
  // 100 resident (x). a1 a2 a3 are made: 200 300 400. op3 makes g3 beside a3, a2, a1, x: 500, then a3 is dead: 400.
  // op4 makes g2 beside g3, a2, a1, x: 500, then g3 and a2 are dead: 300. op5: g1 beside g2, a1, x: 400, then 200. op6: g0: 300,
  // 200.
  const Problem p = chain(3, 100);
  const auto report = simulate(p, save_all(p));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->curve, (std::vector<int64_t>{200, 300, 400, 500, 500, 400, 300}));
  EXPECT_EQ(report->after, (std::vector<int64_t>{200, 300, 400, 400, 300, 200, 200}));
  EXPECT_EQ(report->peak_bytes, 500);
  EXPECT_EQ(report->peak_run, 3);
  EXPECT_EQ(report->time_us, 7);
  EXPECT_EQ(report->live_at_peak, (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST(Simulate, RecomputeFreesInBetween) {
  // a1 is read by op1 and by op5. Rerunning op0 before op5 frees the first a1 after op1: every step from op2 to op4 is 100 lower.
  const Problem p = chain(3, 100);
  const auto report = simulate(p, order({0, 1, 2, 3, 4, 0, 5, 6}));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->curve, (std::vector<int64_t>{200, 300, 300, 400, 400, 300, 400, 300}));
  EXPECT_EQ(report->time_us, 8);
}

TEST(Simulate, WorkspaceStaticAndUnreadOutputs) {
  Make m;
  const int32_t x = m.resident(10), y = m.storage(20), unread = m.storage(40);
  m.p.static_bytes = 1000;
  m.op({x}, {y, unread}).workspace_bytes = 7;
  m.op({y}, {m.kept(1)});
  const auto report = simulate(m.p, save_all(m.p));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->curve, (std::vector<int64_t>{1010 + 60 + 7, 1010 + 20 + 1}));
  EXPECT_EQ(report->after, (std::vector<int64_t>{1010 + 20, 1010 + 1}));
  EXPECT_EQ(base_bytes(m.p), 1010);
}

TEST(Simulate, InPlaceTakesOver) {
  // x(8, resident) -> a(100) -> b(100, may take a) -> kept 1. In place: 108 at op1; else 208.
  Make m;
  const int32_t x = m.resident(8), a = m.storage(100), b = m.storage(100);
  m.op({x}, {a});
  m.op({a}, {b}).inplace = {{a, b}};
  m.op({b}, {m.kept(1)});
  EXPECT_EQ(simulate(m.p, save_all(m.p))->curve, (std::vector<int64_t>{108, 108, 109}));
  EXPECT_EQ(simulate(m.p, save_all(m.p, InPlaceUse::kNone))->curve, (std::vector<int64_t>{108, 208, 109}));
  EXPECT_EQ(save_all(m.p)[1].inplace, 0);
}

TEST(Simulate, InPlaceNeedsADeadInput) {
  Make m;
  const int32_t x = m.resident(8), a = m.storage(100), b = m.storage(100);
  m.op({x}, {a});
  m.op({a}, {b}).inplace = {{a, b}};
  m.op({a, b}, {m.kept(1)});
  EXPECT_EQ(save_all(m.p)[1].inplace, -1);
  auto runs = save_all(m.p);
  runs[1].inplace = 0;
  const auto report = simulate(m.p, runs);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("run 1"), std::string::npos);
}

TEST(Simulate, InPlaceNeverTakesKeptOrResident) {
  Make m;
  const int32_t x = m.resident(100), a = m.kept(100), b = m.storage(100), c = m.storage(100);
  m.op({x}, {a}).inplace = {{x, a}};
  m.op({a}, {b}).inplace = {{a, b}};
  m.op({b}, {c}).inplace = {{b, c}};
  const auto runs = save_all(m.p);
  EXPECT_EQ(runs[0].inplace, -1);
  EXPECT_EQ(runs[1].inplace, -1);
  EXPECT_EQ(runs[2].inplace, 0);
  EXPECT_EQ(simulate(m.p, runs)->after.back(), 200);  // x and a stay, c is read by nobody
}

TEST(Simulate, KeptStaysToTheEndOnce) {
  // `k` is produced twice: the first instance belongs to the caller, the second lives for its read alone.
  Make m;
  const int32_t x = m.resident(1), k = m.kept(100);
  m.op({x}, {k});
  m.op({k}, {m.kept(10)});
  const auto report = simulate(m.p, order({0, 0, 1}));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->curve, (std::vector<int64_t>{101, 201, 211}));
  EXPECT_EQ(report->after, (std::vector<int64_t>{101, 201, 111}));
}

TEST(Simulate, MissingOperandIsLocated) {
  const Problem p = chain(2, 100);
  const auto report = simulate(p, order({1}));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("run 0 (op 1, op1) reads storage 1 (s1)"), std::string::npos);
  EXPECT_FALSE(simulate(p, order({99})));
}

TEST(Simulate, EagerExtraCountsInTheEstimateOnly) {
  Problem p = chain(3, 100);
  p.eager_extra_bytes = {0, 0, 250, 0, 0, 0, 0};
  EXPECT_EQ(eager_peak_bytes(p), 650);  // 400 + 250 at op2
  EXPECT_EQ(simulate(p, save_all(p))->peak_bytes, 500);
}

TEST(Simulate, EmptyProblem) {
  Problem p;
  p.static_bytes = 5;
  const auto report = simulate(p, save_all(p));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->peak_bytes, 5);
  EXPECT_EQ(report->peak_run, -1);
}

}  // namespace
}  // namespace memscale::simulate

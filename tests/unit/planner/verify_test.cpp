// verify(): accepts what is right, and finds every single mutation that makes a plan wrong.
#include <gtest/gtest.h>

#include <random>

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/solve.h"
#include "compiler/simulate/simulate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

using testing::chain;
using testing::Make;

Plan plan_of(const Problem& p, std::vector<planner::Run> runs) {
  auto plan = simulate::make_plan(p, runs, "test");
  if (plan) return std::move(*plan);
  Plan broken;
  broken.runs = std::move(runs);
  return broken;
}

std::string faults_of(const Problem& p, const std::vector<int32_t>& ops) {
  std::vector<planner::Run> runs;
  for (int32_t op : ops) runs.push_back({op, -1});
  const auto faults = verify(p, plan_of(p, runs));
  std::string all;
  for (const std::string& fault : faults) all += fault + "\n";
  return all;
}

TEST(Verify, AcceptsEagerAndRecompute) {
  const Problem p = chain(3, 100);
  EXPECT_EQ(faults_of(p, {0, 1, 2, 3, 4, 5, 6}), "");
  EXPECT_EQ(faults_of(p, {0, 1, 2, 3, 4, 0, 5, 6}), "");
}

TEST(Verify, FindsMissingProducerAndMissingOp) {
  const Problem p = chain(3, 100);
  EXPECT_NE(faults_of(p, {0, 2, 1, 3, 4, 5, 6}).find("which no earlier run has produced"), std::string::npos);
  EXPECT_NE(faults_of(p, {0, 1, 2, 3, 4, 5}).find("op 6 (op6) never runs"), std::string::npos);
  EXPECT_NE(faults_of(p, {0, 1, 2, 3, 4, 5, 9}).find("names op 9 of 7"), std::string::npos);
}

TEST(Verify, ForwardPrecedesTheBorder) {
  Make m;
  const int32_t x = m.resident(1), a = m.storage(1), b = m.kept(1);
  m.op({x}, {a});
  m.op({x}, {b});
  m.op({a}, {m.kept(1)}, 1, true);
  EXPECT_EQ(faults_of(m.p, {1, 0, 2}), "");
  EXPECT_NE(faults_of(m.p, {0, 2, 1}).find("follows the backward"), std::string::npos);
}

TEST(Verify, EffectsHappenOnceAndInOrder) {
  Make m;
  const int32_t x = m.resident(1), buffer = m.resident(1, Role::kBuffer), other = m.resident(1, Role::kBuffer);
  m.op({x}, {m.kept(1)}).mutates = {buffer};
  m.op({x}, {m.kept(1)}).mutates = {other};
  EXPECT_EQ(faults_of(m.p, {0, 1}), "");
  EXPECT_NE(faults_of(m.p, {0, 1, 1}).find("runs a second time, and the op mutates a storage"), std::string::npos);
  EXPECT_NE(faults_of(m.p, {1, 0}).find("mutates out of eager's order"), std::string::npos);
}

TEST(Verify, NotRecomputable) {
  Problem p = chain(3, 100);
  p.ops[0].recomputable = false;
  EXPECT_NE(faults_of(p, {0, 1, 2, 3, 4, 0, 5, 6}).find("is not recomputable"), std::string::npos);
}

TEST(Verify, RandomDrawsKeepTheirFirstOrder) {
  Make m;
  const int32_t x = m.resident(1);
  m.op({x}, {m.kept(1)}).rng = true;
  m.op({x}, {m.kept(1)}).rng = true;
  EXPECT_EQ(faults_of(m.p, {0, 1}), "");
  EXPECT_NE(faults_of(m.p, {1, 0}).find("draws random numbers out of eager's order"), std::string::npos);
}

TEST(Verify, ReadsSeeEagersVersionOfABuffer) {
  // op0 reads the buffer, op1 updates it, op2 reads op0's result. Rerunning op0 after op1 would read the new buffer.
  Make m;
  const int32_t buffer = m.resident(8, Role::kBuffer), a = m.storage(8), b = m.storage(1);
  m.op({buffer}, {a});
  m.op({buffer}, {b}).mutates = {buffer};
  m.op({a, b}, {m.kept(1)});
  EXPECT_EQ(faults_of(m.p, {0, 1, 2}), "");
  EXPECT_EQ(faults_of(m.p, {0, 0, 1, 2}), "");  // before the update: the same value
  EXPECT_NE(faults_of(m.p, {0, 1, 0, 2}).find("after 1 mutations, eager's order reads it after 0"), std::string::npos);
}

TEST(Verify, AMutatedActivationCannotBeMadeAnew) {
  // op0 makes a, op1 updates it in place, op2 and op3 read the update. A rerun of op0 would undo it.
  Make m;
  const int32_t x = m.resident(8), a = m.storage(8);
  m.op({x}, {a});
  m.op({a}, {}).mutates = {a};
  m.op({a}, {m.kept(1)});
  m.op({a}, {m.kept(1)});
  EXPECT_EQ(faults_of(m.p, {0, 1, 2, 3}), "");
  EXPECT_NE(faults_of(m.p, {0, 1, 2, 0, 3}).find("after 0 mutations, eager's order reads it after 1"), std::string::npos);
}

TEST(Verify, InPlaceOverALiveInput) {
  Problem p = chain(3, 100);
  p.ops[1].inplace = {{1, 2}};
  Plan plan = plan_of(p, simulate::save_all(p, simulate::InPlaceUse::kNone));
  EXPECT_TRUE(verify(p, plan).empty());
  plan.runs[1].inplace = 0;  // a1 is read again by op5
  ASSERT_FALSE(verify(p, plan).empty());
  EXPECT_NE(verify(p, plan)[0].find("writes over storage 1 (s1), which run 5 reads later"), std::string::npos);
  plan.runs[1].inplace = 3;
  EXPECT_NE(verify(p, plan)[0].find("takes in-place candidate 3 of 1"), std::string::npos);
}

TEST(Verify, RecountsWhatThePlanStates) {
  const Problem p = chain(3, 100);
  const Plan good = plan_of(p, simulate::save_all(p));
  for (int field = 0; field < 5; ++field) {
    Plan bad = good;
    if (field == 0) bad.peak_bytes += 1;
    if (field == 1) bad.peak_run += 1;
    if (field == 2) bad.time_us += 0.5;
    if (field == 3) bad.base_time_us -= 0.5;
    if (field == 4) bad.lower_bound_bytes = bad.peak_bytes + 1;
    EXPECT_FALSE(verify(p, bad).empty()) << field;
  }
}

TEST(Verify, EveryLostRunIsCaught) {
  // Each run of a tight plan is needed: without it an operand is missing, an op never runs, or the numbers no longer fit.
  int tried = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    const Problem p = generate(options);
    const Tables tables(p);
    Options o;
    o.budget_bytes = (tables.order_floor().bytes + save_all(tables).peak_bytes) / 2;
    const Plan plan = solve(p, o).plan;
    ASSERT_TRUE(verify(p, plan).empty());
    for (size_t i = 0; i < plan.runs.size(); ++i) {
      Plan bad = plan;
      bad.runs.erase(bad.runs.begin() + static_cast<int64_t>(i));
      EXPECT_FALSE(verify(p, bad).empty()) << "seed " << seed << " run " << i;
      ++tried;
    }
  }
  EXPECT_GT(tried, 500);
}

TEST(Verify, AgreesWithTheSimulatorOnRandomReruns) {
  // Sequences with reruns strewn in at random: whatever the simulator and the verifier both count must be equal.
  std::mt19937_64 random(7);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.fixed = 0;
    const Problem p = generate(options);
    std::vector<planner::Run> runs;
    std::vector<int32_t> done;
    for (int32_t i = 0; i < static_cast<int32_t>(p.ops.size()); ++i) {
      runs.push_back({i, -1});
      done.push_back(i);
      while (random() % 3 == 0) runs.push_back({done[random() % done.size()], -1});
    }
    simulate::assign_inplace(p, runs);
    const Plan plan = plan_of(p, runs);
    ASSERT_GT(plan.peak_bytes, 0);
    EXPECT_EQ(verify(p, plan), std::vector<std::string>{}) << seed;
  }
}

}  // namespace
}  // namespace memscale::planner

// All baselines by name, alone, through solve(), and beside it.
#include "compiler/planner/baselines/compare.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/generate_network.h"
#include "compiler/planner/solve.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

TEST(Compare, AllWithinBudgetOrWithAReason) {
  const Problem p = generate_network("resnet32");
  const Tables tables(p);
  const int64_t budget = save_all(tables).peak_bytes / 2;
  const auto all = compare(p, budget);
  ASSERT_EQ(all.size(), baseline_policies().size());
  int fits = 0;
  for (const BaselineResult& r : all) {
    if (r.end != BaselineEnd::kFits) {
      EXPECT_NE(r.describe(p), "fits");
      continue;
    }
    ++fits;
    EXPECT_LE(r.plan.peak_bytes, budget) << r.policy;
    EXPECT_EQ(verify(p, r.plan), std::vector<std::string>{}) << r.policy;
    EXPECT_EQ(r.plan.policy, r.policy);
  }
  EXPECT_GE(fits, 8);
}

TEST(Compare, ReasonsNameTheOp) {
  // The largest working set of the chain is 400.
  const Problem p = testing::chain(3, 100);
  const Tables tables(p);
  EXPECT_EQ(run_baseline(tables, "lru", 399).describe(p), "out of memory at op 4 (op4)");
  EXPECT_EQ(run_baseline(tables, "save-all", 499).describe(p), "peaks at 500 bytes, over the budget");
  EXPECT_EQ(run_baseline(tables, "save-all", 500).describe(p), "fits");
  CompareOptions strict;
  strict.time_factor = 1;
  EXPECT_EQ(run_baseline(tables, "dtr", 400, strict).describe(p).substr(0, 8), "too slow");
  strict = {};
  strict.evaluations = 0;
  EXPECT_EQ(run_baseline(tables, "dtr", 400, strict).describe(p).substr(0, 13), "too much work");
}

TEST(Compare, SolveTakesEachByName) {
  const Problem p = generate_network("unet");
  const Tables tables(p);
  Options o;
  o.budget_bytes = save_all(tables).peak_bytes * 7 / 10;
  for (const std::string& policy : baseline_policies()) {
    o.policy = policy;
    const SolveResult r = solve(p, o);
    const BaselineResult alone = run_baseline(tables, policy, o.budget_bytes);
    EXPECT_EQ(r.feasible, alone.end == BaselineEnd::kFits) << policy;
    if (r.feasible)
      EXPECT_EQ(r.plan.runs, alone.plan.runs) << policy;
    else
      EXPECT_NE(explain_infeasible(p, r).find("the policy " + policy + " fails"), std::string::npos);
  }
  // Also where eager fits.
  o.budget_bytes = save_all(tables).peak_bytes;
  for (const std::string& policy : policies()) {
    o.policy = policy;
    const SolveResult r = solve(p, o);
    EXPECT_TRUE(r.feasible || policy == "chen-greedy") << policy;
  }
}

TEST(Compare, OursIsNeverBehind) {
  for (const auto name : kNetworks) {
    const Problem p = generate_network(name);
    if (p.ops.size() > 1000) continue;
    const Tables tables(p);
    for (const int64_t percent : {80, 60, 40}) {
      Options o;
      o.budget_bytes = save_all(tables).peak_bytes * percent / 100;
      const SolveResult ours = solve(p, o);
      ASSERT_TRUE(ours.feasible) << name;
      for (const BaselineResult& r : compare(p, o.budget_bytes))
        if (r.end == BaselineEnd::kFits)
          EXPECT_LE(ours.plan.time_us, r.plan.time_us * (1 + 1e-9)) << name << " " << percent << " " << r.policy;
    }
  }
}

TEST(Compare, TheResultListsThem) {
  const Problem p = generate_network("unet");
  Options o;
  o.budget_bytes = save_all(Tables(p)).peak_bytes / 2;
  auto lists = [&](const SolveResult& r, const std::string& policy) {
    return std::any_of(r.baselines.begin(), r.baselines.end(), [&](const Baseline& b) { return b.policy == policy; });
  };
  const SolveResult plain = solve(p, o);
  for (const char* policy : {"save-all", "sqrt-n", "msps", "dtr-eq", "knapsack-all"}) EXPECT_TRUE(lists(plain, policy)) << policy;
  EXPECT_FALSE(lists(plain, "dtr"));
  o.all_baselines = true;
  const SolveResult full = solve(p, o);
  for (const std::string& policy : baseline_policies()) EXPECT_TRUE(lists(full, policy)) << policy;
  EXPECT_LE(full.plan.time_us, plain.plan.time_us);
  for (const Baseline& b : full.baselines) EXPECT_EQ(b.note.empty(), b.fits) << b.policy;
}

}  // namespace
}  // namespace memscale::planner

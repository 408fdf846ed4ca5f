// See compare.h.
#include "compiler/planner/baselines/compare.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "compiler/planner/baselines/knapsack.h"
#include "compiler/planner/baselines/segments.h"

namespace memscale::planner {
namespace {

struct Rule {
  const char* name;
  Plan (*make)(const Tables&);
};
constexpr std::array<Rule, 4> kRules = {
    {{"save-all", save_all}, {"full-recompute", full_recompute}, {"sqrt-n", every_sqrt_n}, {"chen-greedy", chen_greedy}}};

struct Knapsack {
  const char* name;
  KnapsackOptions options;
};
constexpr std::array<Knapsack, 3> kKnapsacks = {{
    {"knapsack", {KnapsackSolver::kDp, KnapsackItems::kAsTorch}},
    {"knapsack-greedy", {KnapsackSolver::kGreedy, KnapsackItems::kAsTorch}},
    {"knapsack-all", {KnapsackSolver::kDp, KnapsackItems::kAll}},
}};

constexpr std::array<Score, 7> kScores = {Score::kDtr, Score::kDtrEq, Score::kDtrLocal, Score::kMsps,
                                          Score::kLru, Score::kSize,  Score::kRandom};

BaselineEnd end_of(OnlineEnd end) {
  switch (end) {
    case OnlineEnd::kDone:
      return BaselineEnd::kFits;
    case OnlineEnd::kOutOfMemory:
      return BaselineEnd::kOutOfMemory;
    case OnlineEnd::kThrashed:
      return BaselineEnd::kThrashed;
    case OnlineEnd::kTooMuchWork:
      break;
  }
  return BaselineEnd::kTooMuchWork;
}

void run(const Tables& tables, int64_t budget, const CompareOptions& options, BaselineResult* result) {
  for (const Score score : kScores) {
    if (result->policy != name_of(score)) continue;
    OnlineOptions online;
    online.score = score;
    online.deallocation = options.deallocation;
    online.time_factor = options.time_factor;
    online.seed = options.seed;
    online.evaluations = options.evaluations;
    OnlineResult end = run_online(tables, budget, online);
    result->end = end_of(end.end);
    result->plan = std::move(end.plan);
    result->stuck_op = end.stuck_op;
    return;
  }
  for (const Rule& rule : kRules)
    if (result->policy == rule.name) result->plan = rule.make(tables);
  for (const Knapsack& k : kKnapsacks)
    if (result->policy == k.name) result->plan = knapsack(tables, budget, k.options).plan;
  result->plan.policy = result->policy;
  result->end = result->plan.peak_bytes <= budget ? BaselineEnd::kFits : BaselineEnd::kOverBudget;
}

}  // namespace

const std::vector<std::string>& baseline_policies() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Rule& rule : kRules) all.push_back(rule.name);
    for (const Knapsack& k : kKnapsacks) all.push_back(k.name);
    for (const Score score : kScores) all.push_back(name_of(score));
    return all;
  }();
  return names;
}

bool is_budgeted(const std::string& policy) {
  return std::none_of(kRules.begin(), kRules.end(), [&](const Rule& rule) { return policy == rule.name; });
}

BaselineResult run_baseline(const Tables& tables, const std::string& policy, int64_t budget_bytes,
                            const CompareOptions& options) {
  BaselineResult result;
  result.policy = policy;
  const auto begin = std::chrono::steady_clock::now();
  run(tables, budget_bytes, options, &result);
  result.planning_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<BaselineResult> compare(const Problem& problem, int64_t budget_bytes, const CompareOptions& options) {
  const Tables tables(problem);
  std::vector<BaselineResult> all;
  for (const std::string& policy : baseline_policies()) all.push_back(run_baseline(tables, policy, budget_bytes, options));
  return all;
}

std::string BaselineResult::describe(const Problem& problem) const {
  const std::string at =
      stuck_op < 0 ? "" : " at op " + std::to_string(stuck_op) + " (" + problem.ops[static_cast<size_t>(stuck_op)].name + ")";
  switch (end) {
    case BaselineEnd::kFits:
      return "fits";
    case BaselineEnd::kOverBudget:
      return "peaks at " + std::to_string(plan.peak_bytes) + " bytes, over the budget";
    case BaselineEnd::kOutOfMemory:
      return "out of memory" + at;
    case BaselineEnd::kThrashed:
      return "too slow" + at;
    case BaselineEnd::kTooMuchWork:
      break;
  }
  return "too much work" + at;
}

}  // namespace memscale::planner

// See solve.h.
#include "compiler/planner/solve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "compiler/planner/baselines/compare.h"
#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/evict.h"
#include "compiler/planner/relaxation.h"
#include "compiler/planner/sequence.h"
#include "compiler/simulate/simulate.h"

namespace memscale::planner {
namespace {

// In the order of trial: the first ones win most often, and their times cut the later passes short.
const std::array<Variant, 10> kVariants = {{
    {"evict-0.5", 0.5, 1, 0, Variant::kTime},
    {"evict-over-0.5", 0.5, 1, 0, Variant::kOver},
    {"evict-0.25-shared", 0.25, 0.3, 0, Variant::kTime},
    {"evict-0.5-hold", 0.5, 0.3, 0.2, Variant::kTime},
    {"evict-over-1", 1, 0.3, 0, Variant::kOver},
    {"evict-1", 1, 1, 0, Variant::kTime},
    {"evict-0.25-hold", 0.25, 1, 0.3, Variant::kOver},
    {"price-1", 1, 1, 0, Variant::kPrice},
    {"price-1-hold", 1, 0.3, 0.2, Variant::kPrice},
    {"evict-0", 0, 0.1, 0.1, Variant::kTime},
}};
constexpr double kAbort = 1.5;                   // a pass stops beyond this multiple of the best plan's time
constexpr int64_t kRunFactor = 12;               // and beyond this many runs per op
constexpr int64_t kPassWork = 1500;              // chain steps per op in one pass
constexpr int64_t kLowestWork = 20000;           // and in the search for the lowest peak
constexpr int64_t kMaxPassWork = 30'000'000;     // about 0.3 s
constexpr int64_t kMaxLowestWork = 100'000'000;  // about 1 s
constexpr int kBisections = 9;
constexpr int64_t kRelaxWork = 2'000'000;  // ops times iterations
constexpr int64_t kFreeSearch = 20000;     // ops times rounds that the search may take unasked
constexpr int32_t kFreeRounds = 24;
constexpr double kSpread = 0.5;  // of the perturbed scores, standard deviation of the logarithm

// Baselines that look at the budget and take part in the portfolio where they cost little beside it.
constexpr std::array<const char*, 3> kPeers = {"msps", "dtr-eq", "knapsack-all"};
constexpr size_t kPeerOps = 4000;
constexpr int64_t kNamedEvaluations = 1'000'000'000;  // of an online baseline that is asked for by name: some seconds

Plan finish(const Tables& tables, const std::vector<int32_t>& ops, const std::string& policy) {
  std::vector<Run> runs(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) runs[i].op = ops[i];
  simulate::assign_inplace(tables.problem(), runs);
  auto plan = simulate::make_plan(tables.problem(), std::move(runs), policy.c_str());
  if (!plan) return {};  // a legal sequence simulates
  plan->lower_bound_bytes = tables.lower_bound_bytes();
  return std::move(*plan);
}

class Solver {
 public:
  explicit Solver(const Problem& problem) : tables_(problem), evictor_(tables_), base_(save_all(tables_)) {
    if (auto report = simulate::simulate(problem, base_.runs)) curve_ = std::move(report->curve);
  }

  const Tables& tables() const { return tables_; }
  const Plan& base() const { return base_; }
  int64_t work() const { return evictor_.visits(); }

  /// The best sequence that one pass and give-back reach, if it beats `best`.
  bool try_variant(int64_t budget, const Variant& variant, std::span<const double> multipliers, std::optional<Plan>* best,
                   bool give_back = true) {
    std::vector<double> prices;
    if (variant.distance == Variant::kOver) {
      prices.resize(curve_.size());
      for (size_t i = 0; i < prices.size(); ++i)
        prices[i] = static_cast<double>(std::max<int64_t>(0, curve_[i] - budget)) * tables_.problem().ops[i].time_us;
    } else if (variant.distance == Variant::kPrice) {
      prices = relaxed(budget).prices;
    }
    Limits limits;
    const auto n = static_cast<int64_t>(tables_.problem().ops.size());
    limits.runs = kRunFactor * n + 1000;
    limits.work = std::min(kPassWork * n + 300'000, kMaxPassWork);
    if (*best) limits.time_us = kAbort * (*best)->time_us - (kAbort - 1) * base_.base_time_us + 1e-9;
    if (evictor_.run(budget, variant, prices, multipliers, limits) != PassEnd::kDone) return false;
    if (give_back) return improve(budget, evictor_.runs(), variant.name, best);
    *best = finish(tables_, Sequence(tables_, evictor_.runs()).ops(), variant.name);
    return true;
  }

  bool improve(int64_t budget, const std::vector<int32_t>& ops, const std::string& policy, std::optional<Plan>* best) {
    bool better = false;
    for (GiveBackOrder order : {GiveBackOrder::kTimePerByteRun, GiveBackOrder::kTime}) {
      Sequence sequence(tables_, ops);
      if (sequence.peak_bytes() > budget) return better;
      sequence.give_back(budget, order);
      if (*best && sequence.time_us() >= (*best)->time_us - 1e-9 * base_.base_time_us) continue;
      Plan plan = finish(tables_, sequence.ops(), policy);
      if (plan.peak_bytes > budget) continue;
      *best = std::move(plan);
      better = true;
    }
    return better;
  }

  const Relaxation& relaxed(int64_t budget, double time_us = 0) {
    if (relaxed_for_ == budget) return relaxation_;
    const int64_t size = static_cast<int64_t>(tables_.problem().ops.size()) + 1;
    const auto iterations = static_cast<int>(std::clamp<int64_t>(kRelaxWork / size, 40, 200));
    relaxation_ = relax(tables_, budget, time_us > 0 ? time_us : 1.2 * base_.base_time_us, iterations);
    relaxed_for_ = budget;
    return relaxation_;
  }

  void search(int64_t budget, int32_t rounds, int64_t work_limit, std::optional<Plan>* best) {
    if (!*best) return;
    std::mt19937_64 random(0x6d656d7363616c65);
    const size_t m = tables_.problem().storages.size();
    std::vector<double> centre(m, 1), trial(m);
    const Variant* variant = &kVariants[0];
    for (const Variant& v : kVariants)
      if (v.name == (*best)->policy) variant = &v;
    for (int32_t round = 0; round < rounds && work() < work_limit; ++round) {
      const double spread = kSpread * (1 - static_cast<double>(round) / rounds);
      for (size_t s = 0; s < m; ++s) {
        // Sum of uniform draws, not std::normal_distribution: the same numbers with every standard library.
        double g = -2;
        for (int k = 0; k < 4; ++k) g += static_cast<double>(random() >> 11) * 0x1p-53;
        trial[s] = centre[s] * std::exp(spread * g * 1.7320508);
      }
      Variant named = *variant;
      named.name += "+search";
      if (try_variant(budget, named, trial, best)) centre = trial;
    }
  }

 private:
  Tables tables_;
  Evictor evictor_;
  Plan base_;
  std::vector<int64_t> curve_;
  Relaxation relaxation_;
  int64_t relaxed_for_ = -1;
};

/// A plan of the lowest peak over the variants that are quick to fail.
Plan lowest(Solver& solver) {
  const Tables& tables = solver.tables();
  Plan best = solver.base();
  auto consider = [&](Plan plan) {
    if (plan.peak_bytes < best.peak_bytes || (plan.peak_bytes == best.peak_bytes && plan.time_us < best.time_us))
      best = std::move(plan);
  };
  for (const std::string& policy : baseline_policies())
    if (!is_budgeted(policy)) consider(run_baseline(tables, policy, 0).plan);
  int64_t low = tables.order_floor().bytes, high = best.peak_bytes;
  const auto n = static_cast<int64_t>(tables.problem().ops.size());
  const int64_t limit = solver.work() + std::min(kLowestWork * n + 1'000'000, kMaxLowestWork);
  for (int step = 0; step < kBisections && low < high && solver.work() < limit; ++step) {
    const int64_t middle = step == 0 ? low : low + (high - low) / 2;
    std::optional<Plan> found;
    for (size_t v : {0, 2, 5, 3}) {
      if (solver.try_variant(middle, kVariants[v], {}, &found, false)) break;
    }
    if (found) {
      high = std::min(middle, found->peak_bytes);
      consider(std::move(*found));
    } else {
      low = middle + 1;
    }
  }
  std::vector<int32_t> ops;
  for (const Run& run : best.runs) ops.push_back(run.op);
  std::optional<Plan> improved;
  if (solver.improve(best.peak_bytes, ops, best.policy, &improved)) consider(std::move(*improved));
  return best;
}

std::vector<int32_t> working_set(const Tables& tables, const Floor& floor) {
  const Problem& p = tables.problem();
  if (floor.op < 0) return {};
  std::vector<int32_t> set;
  for (int32_t s = 0; s < static_cast<int32_t>(p.storages.size()); ++s)
    if (!p.storages[s].resident && tables.always_beside(s, floor.op)) set.push_back(s);
  std::stable_sort(set.begin(), set.end(), [&](int32_t a, int32_t b) { return p.storages[a].bytes > p.storages[b].bytes; });
  return set;
}

std::string gib(int64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f GiB (%lld bytes)", static_cast<double>(bytes) / (1 << 30),
                static_cast<long long>(bytes));
  return text;
}

}  // namespace

std::vector<std::string> policies() {
  std::vector<std::string> names;
  for (const std::string& policy : baseline_policies())
    if (!is_budgeted(policy)) names.push_back(policy);
  for (const Variant& variant : kVariants) names.push_back(variant.name);
  for (const std::string& policy : baseline_policies())
    if (is_budgeted(policy)) names.push_back(policy);
  return names;
}

SolveResult solve(const Problem& problem, const Options& options) {
  SolveResult result;
  result.budget_bytes = options.budget_bytes;
  const bool all = options.policy == "auto";
  const auto names = policies();
  if (!all && std::find(names.begin(), names.end(), options.policy) == names.end()) return result;
  Solver solver(problem);
  const Tables& tables = solver.tables();
  const int64_t budget = options.budget_bytes;
  const int64_t limit = options.work_limit > 0 ? options.work_limit : 6000 * static_cast<int64_t>(problem.ops.size()) + 1'000'000;
  std::optional<Plan> best;
  auto try_baseline = [&](const std::string& policy) {
    CompareOptions limits;
    limits.evaluations = kNamedEvaluations;
    BaselineResult made = run_baseline(tables, policy, budget, limits);
    const bool fits = made.end == BaselineEnd::kFits;
    if (!fits && policy == options.policy) result.policy_note = "the policy " + policy + " fails: " + made.describe(problem);
    result.baselines.push_back({policy, made.plan.peak_bytes, made.plan.time_us, fits, fits ? "" : made.describe(problem)});
    if (!fits || (!all && options.policy != policy)) return;
    if (all && is_budgeted(policy)) {
      std::vector<int32_t> ops;
      for (const Run& run : made.plan.runs) ops.push_back(run.op);
      solver.improve(budget, ops, policy + "+give-back", &best);
    }
    if (!best || made.plan.time_us < best->time_us) best = std::move(made.plan);
  };
  for (const std::string& policy : baseline_policies())
    if (!is_budgeted(policy)) try_baseline(policy);
  const bool nothing_to_do = solver.base().peak_bytes <= budget;
  if (!all && is_budgeted(options.policy) && budget >= tables.order_floor().bytes)
    for (const std::string& policy : baseline_policies())
      if (policy == options.policy) try_baseline(policy);
  if ((!nothing_to_do || !all) && budget >= tables.order_floor().bytes) {
    if (best && all) {  // a structured plan may have memory to spare
      std::vector<int32_t> ops;
      for (const Run& run : best->runs) ops.push_back(run.op);
      solver.improve(budget, ops, best->policy + "+give-back", &best);
    }
    for (const Variant& variant : kVariants)
      if ((all && solver.work() < limit) || options.policy == variant.name) solver.try_variant(budget, variant, {}, &best);
    const auto free_rounds =
        static_cast<int32_t>(std::min<int64_t>(kFreeRounds, kFreeSearch / std::max<int64_t>(1, problem.ops.size())));
    const int32_t rounds = options.search_rounds >= 0 ? options.search_rounds : all ? free_rounds : 0;
    solver.search(budget, rounds, limit, &best);
    if (all && problem.ops.size() <= kPeerOps)
      for (const char* peer : kPeers) try_baseline(peer);
  }
  if (options.all_baselines && budget >= tables.order_floor().bytes)
    for (const std::string& policy : baseline_policies())
      if (std::none_of(result.baselines.begin(), result.baselines.end(), [&](const Baseline& b) { return b.policy == policy; }))
        try_baseline(policy);
  if (best) {
    result.plan = std::move(*best);
    result.feasible = true;
  } else {
    result.plan = lowest(solver);
    result.feasible = result.plan.peak_bytes <= budget && all;
    result.lowest_peak_bytes = result.plan.peak_bytes;
    result.floor = tables.order_floor();
    result.floor_storages = working_set(tables, result.floor);
  }
  result.work = solver.work();
  result.lower_bound_us = nothing_to_do ? solver.base().base_time_us : solver.relaxed(budget, result.plan.time_us).bound_us;
  return result;
}

Plan find_lowest(const Problem& problem) {
  Solver solver(problem);
  return lowest(solver);
}

std::string explain_infeasible(const Problem& problem, const SolveResult& result) {
  if (!result.policy_note.empty() && result.lowest_peak_bytes <= result.budget_bytes)
    return result.policy_note + "; other policies go down to " + gib(result.lowest_peak_bytes);
  std::string text =
      "the budget of " + gib(result.budget_bytes) + " cannot be met: the lowest peak found is " + gib(result.lowest_peak_bytes);
  if (result.floor.op < 0) return text;
  text += "; op " + std::to_string(result.floor.op) + " (" + problem.ops[result.floor.op].name + ") needs " +
          gib(result.floor.bytes) + " at once, of which " + gib(simulate::base_bytes(problem)) + " stand all through the step";
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < result.floor_storages.size() && i < kShown; ++i) {
    const Storage& s = problem.storages[result.floor_storages[i]];
    text += std::string(i == 0 ? ": " : ", ") + s.name + " " + gib(s.bytes);
  }
  if (result.floor_storages.size() > kShown) text += " and " + std::to_string(result.floor_storages.size() - kShown) + " more";
  return text;
}

}  // namespace memscale::planner

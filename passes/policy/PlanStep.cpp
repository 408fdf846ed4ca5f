//===- PlanStep.cpp - Ask the planner, write its answer down ---------------===//
//
// Budget, planner, proof of the plan, annotations. Needs a captured step;
// annotates, changes nothing else.
//
//===----------------------------------------------------------------------===//

#include "passes/policy/PlanStep.h"

#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/solve.h"
#include "compiler/simulate/simulate.h"
#include "passes/policy/Decisions.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace memscale;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
class Planning {
public:
  Planning(StepOp step, const PlanningOptions &options, PlanningResult &result)
      : step(step), options(options), result(result), storages(step) {}

  LogicalResult run() {
    if (step.getPhase() != Phase::Captured)
      return step.emitOpError("expected the phase `captured`, found `") << stringifyPhase(step.getPhase()) << "`";
    built = buildProblem(step, storages, options.costs, options.static_bytes);
    const planner::Problem &problem = built.problem;
    if (auto faults = problem.check(); !faults.empty())
      return step.emitOpError("gives a broken planning problem: ") << llvm::join(faults, "; ");
    result.notes = built.notes;
    result.unknown_workspaces.assign(built.unknown_workspaces.begin(), built.unknown_workspaces.end());
    result.static_bytes = simulate::base_bytes(problem);
    if (failed(measureEager()) || failed(choose()))
      return failure();
    result.problem = problem;
    if (auto faults = planner::verify(problem, result.plan); !faults.empty())
      return step.emitOpError("has a plan that does not hold: ") << llvm::join(faults, "; ");
    annotate();
    return success();
  }

private:
  LogicalResult measureEager() {
    const planner::Problem &problem = built.problem;
    auto runs = simulate::save_all(problem, simulate::InPlaceUse::kNone);
    auto report = simulate::simulate(problem, runs);
    if (!report)
      return step.emitOpError("does not simulate: ") << report.error().message;
    result.save_all_peak_bytes = result.eager_peak_bytes = report->peak_bytes;
    for (size_t i = 0; i < problem.eager_extra_bytes.size(); ++i)
      result.eager_peak_bytes = std::max(result.eager_peak_bytes, report->curve[i] + problem.eager_extra_bytes[i]);
    return success();
  }

  LogicalResult choose() {
    const planner::Problem &problem = built.problem;
    int64_t budget = options.budget_bytes;
    if (options.budget_fraction > 0) {
      auto fraction = static_cast<int64_t>(options.budget_fraction * static_cast<double>(result.save_all_peak_bytes));
      budget = budget > 0 ? std::min(budget, fraction) : fraction;
    }
    result.budget_bytes = budget;
    if (options.minimize)
      return take(planner::find_lowest(problem));
    if (budget <= 0 || options.policy == "save-all") {
      planner::Tables tables(problem);
      if (failed(take(planner::save_all(tables))))
        return failure();
      return budget > 0 && result.planned_peak_bytes > budget ? tooLarge(result.planned_peak_bytes, "") : success();
    }
    auto known = planner::policies();
    if (options.policy != "auto" && !llvm::is_contained(known, options.policy))
      return step.emitOpError("cannot be planned by the policy \"")
             << options.policy << "\"; expected auto, save-all, " << llvm::join(known, ", ");
    planner::Options solver;
    solver.budget_bytes = budget;
    solver.policy = options.policy;
    solver.search_rounds = options.search_rounds;
    planner::SolveResult solved = planner::solve(problem, solver);
    for (const planner::Baseline &baseline : solved.baselines)
      if (baseline.peak_bytes > 0) // an online one that gave up has no plan
        result.baselines.push_back({baseline.policy, baseline.peak_bytes, baseline.time_us});
    if (!solved.feasible)
      return tooLarge(solved.lowest_peak_bytes, planner::explain_infeasible(problem, solved));
    return take(std::move(solved.plan));
  }

  LogicalResult tooLarge(int64_t lowest, std::string why) {
    result.feasible = false;
    if (why.empty())
      why = "the policy save-all peaks at " + printBytes(lowest) + ", the budget is " + printBytes(result.budget_bytes);
    result.infeasible = why;
    result.problem = built.problem;
    return step.emitError() << why;
  }

  LogicalResult take(planner::Plan plan) {
    result.feasible = true;
    result.planned_peak_bytes = plan.peak_bytes;
    result.lower_bound_bytes = plan.lower_bound_bytes;
    result.base_time_us = plan.base_time_us;
    result.time_us = plan.time_us;
    result.policy = plan.policy;
    result.plan = std::move(plan);
    describePeak();
    return success();
  }

  void describePeak() {
    auto report = simulate::simulate(built.problem, result.plan.runs);
    if (!report || report->peak_run < 0)
      return;
    KernelOpInterface call = built.calls[result.plan.runs[report->peak_run].op];
    SourceLocation source = getSourceLocation(call.getLoc());
    result.peak_op = describeCall(call);
    result.peak_file = source.file.str();
    result.peak_line = source.line;
    result.peak_module_path = source.modulePath.str();
    for (int32_t storage : report->live_at_peak) {
      const planner::Storage &live = built.problem.storages[storage];
      SourceLocation made = getSourceLocation(storages.info(storage).root.getLoc());
      const char *role = live.role == planner::Role::kGradient ? "gradient"
                         : live.role == planner::Role::kOutput ? "output"
                                                               : "activation";
      result.live_at_peak.push_back({live.name, role, live.bytes, made.file.str(), made.line, made.modulePath.str()});
    }
  }

  void annotate() {
    ::mlir::Builder b(step.getContext());
    std::vector<Decision> decisions = explainPlan(built, result.plan);
    DenseMap<int32_t, KernelOpInterface> calls;
    for (KernelOpInterface call : built.calls)
      calls[call.getId()] = call;
    for (const Decision &decision : decisions) {
      DecisionKind kind = *symbolizeDecisionKind(decision.kind);
      calls[decision.call]->setAttr("decision", DecisionAttr::get(b.getContext(), kind, b.getStringAttr(decision.reason)));
    }
    SmallVector<int32_t> schedule, inplace;
    result.applied = false;
    for (auto [position, run] : llvm::enumerate(result.plan.runs)) {
      schedule.push_back(built.calls[run.op].getId());
      inplace.push_back(run.inplace < 0 ? -1 : static_cast<int32_t>(built.inplace_operands[run.op][run.inplace]));
      result.applied |= run.inplace >= 0 || run.op != static_cast<int32_t>(position);
    }
    step.setSchedule(schedule);
    step.setScheduleInplace(ArrayRef<int32_t>(inplace));
    step.setPhase(Phase::Planned);
    llvm::stable_sort(decisions, [](const Decision &a, const Decision &b) { return a.bytes > b.bytes; });
    result.decisions = std::move(decisions);
  }

  StepOp step;
  const PlanningOptions &options;
  PlanningResult &result;
  Storages storages;
  BuiltProblem built;
};
} // namespace

LogicalResult memscale::passes::planStep(StepOp step, const PlanningOptions &options, PlanningResult &result) {
  result = {};
  return Planning(step, options, result).run();
}

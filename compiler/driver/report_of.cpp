// From PlanningResult to Report.
#include "compiler/driver/report_of.h"

#include <algorithm>
#include <map>

#include "compiler/simulate/simulate.h"

namespace memscale::driver {
namespace {

constexpr double kModelErrorPercent = 1.0;  // of predicted peaks where every workspace is known

/// An op whose workspace is unknown is taken to need at most its operands and results once more.
double error_percent(const passes::PlanningResult& planning, const std::vector<report::UnknownWorkspace>& unknown) {
  if (unknown.empty() || planning.planned_peak_bytes <= 0) return kModelErrorPercent;
  const planner::Problem& problem = planning.problem;
  Expected<simulate::Report> simulated = simulate::simulate(problem, planning.plan.runs);
  if (!simulated) return kModelErrorPercent;
  std::map<std::string, int64_t> names;
  for (const auto& u : unknown) names.emplace(u.op, u.calls);
  int64_t possible = planning.planned_peak_bytes;
  for (size_t i = 0; i < planning.plan.runs.size(); ++i) {
    const planner::Op& op = problem.ops[planning.plan.runs[i].op];
    if (!names.contains(op.name)) continue;
    int64_t again = 0;
    for (int32_t s : op.inputs) again += problem.storages[s].bytes;
    for (int32_t s : op.outputs) again += problem.storages[s].bytes;
    possible = std::max(possible, simulated->curve[i] + again);
  }
  return kModelErrorPercent +
         100.0 * static_cast<double>(possible - planning.planned_peak_bytes) / static_cast<double>(planning.planned_peak_bytes);
}

}  // namespace

void fill_report(const passes::PlanningResult& planning, const TrainingStep& step, report::Report& report) {
  const auto whole = [&](int64_t bytes) { return std::max(bytes, step.optimizer_peak_bytes); };
  report.applied = planning.applied;
  report.static_bytes = step.static_bytes;
  report.optimizer_peak_bytes = step.optimizer_peak_bytes;
  report.eager_peak_bytes = step.eager_peak_bytes;
  report.save_all_peak_bytes = whole(planning.save_all_peak_bytes);
  report.planned_peak_bytes = whole(planning.planned_peak_bytes);
  report.lower_bound_bytes = whole(planning.lower_bound_bytes);
  report.base_time_us = planning.base_time_us;
  report.planned_time_us = planning.time_us;
  report.policy = planning.policy;
  for (const auto& b : planning.baselines) report.baselines.push_back({b.policy, whole(b.peak_bytes), b.time_us});
  for (const auto& d : planning.decisions) {
    report.decisions.push_back({d.kind,
                                d.tensor,
                                d.op,
                                d.call,
                                d.bytes,
                                d.reruns,
                                d.added_time_us,
                                d.reason,
                                {d.file, static_cast<int>(d.line), d.module_path}});
  }
  if (planning.planned_peak_bytes >= step.optimizer_peak_bytes) {
    report.peak_op = planning.peak_op;
    report.peak_location = {planning.peak_file, static_cast<int>(planning.peak_line), planning.peak_module_path};
    for (const auto& s : planning.live_at_peak) {
      report.live_at_peak.push_back({s.name, s.role, s.bytes, {s.file, static_cast<int>(s.line), s.module_path}});
    }
  } else {
    report.peak_op = "the optimizer's step";
  }
  for (const auto& [op, calls] : planning.unknown_workspaces) report.unknown_workspaces.push_back({op, calls});
  report.error_percent = error_percent(planning, report.unknown_workspaces);
  report.warnings.insert(report.warnings.end(), planning.notes.begin(), planning.notes.end());
}

}  // namespace memscale::driver

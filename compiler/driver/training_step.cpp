// Measuring of a step before it is planned.
#include "compiler/driver/training_step.h"

#include <algorithm>
#include <map>

#include "compiler/simulate/simulate.h"

namespace memscale::driver {

OptimizerBytes optimizer_of(const capture::Graph& graph, const Optimizer& optimizer, const cost::Profile& profile) {
  std::map<capture::ValueId, const capture::Argument*> parameters;
  for (const capture::Argument& a : graph.arguments) {
    if (a.role == capture::Role::kParameter) parameters[a.value] = &a;
  }
  std::vector<TrainedParameter> trained;
  for (const capture::Gradient& gradient : graph.gradients) {
    if (gradient.value == capture::kNoValue || !parameters.contains(gradient.argument)) continue;
    const capture::Value& value = graph.values[gradient.argument];
    int64_t bytes = ir::StridedTensorType::elementBytes(value.dtype);
    for (int64_t size : value.sizes) bytes *= size;
    trained.push_back({profile.round_bytes(bytes)});
  }
  return optimizer_bytes(optimizer, trained, profile.device, profile.round_bytes(4));
}

Expected<TrainingStep> measure_step(ir::StepOp step, const passes::CostModel& costs, const OptimizerBytes& optimizer) {
  const passes::Storages storages(step);
  TrainingStep result;
  result.optimizer = optimizer;
  result.built = passes::buildProblem(step, storages, costs, optimizer.state);
  const planner::Problem& problem = result.built.problem;
  if (const auto faults = problem.check(); !faults.empty()) {
    return Error{Exit::kInternal, "the planning problem is not well formed: " + faults.front(), ""};
  }
  result.static_bytes = simulate::base_bytes(problem);
  int64_t gradients = 0;
  for (const planner::Storage& storage : problem.storages) {
    if (storage.role == planner::Role::kGradient && storage.keep) gradients += storage.bytes;
  }
  // The outputs are gone by then, as in a loop that keeps the loss alone.
  result.optimizer_peak_bytes = result.static_bytes + gradients + optimizer.temporary;
  const auto runs = simulate::save_all(problem, simulate::InPlaceUse::kNone);
  Expected<simulate::Report> eager = simulate::simulate(problem, runs);
  if (!eager) return Error{Exit::kInternal, "eager's order does not simulate: " + eager.error().message, ""};
  result.eager_peak_bytes = std::max(eager->peak_bytes, result.optimizer_peak_bytes);
  for (size_t i = 0; i < problem.eager_extra_bytes.size(); ++i) {
    result.eager_peak_bytes = std::max(result.eager_peak_bytes, eager->curve[i] + problem.eager_extra_bytes[i]);
  }
  return result;
}

}  // namespace memscale::driver

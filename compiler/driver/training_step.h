// Peaks of a whole training step: forward and backward from the planning problem, and the moment at which the optimizer steps.
// Needs a captured step; changes nothing.
#pragma once

#include "compiler/capture/graph.h"
#include "compiler/cost/profile.h"
#include "compiler/driver/optimizer.h"
#include "passes/policy/BuildProblem.h"

namespace memscale::driver {

struct TrainingStep {
  passes::BuiltProblem built;
  OptimizerBytes optimizer;
  int64_t static_bytes = 0;          // arguments and optimizer state
  int64_t eager_peak_bytes = 0;      // of forward, backward and optimizer
  int64_t optimizer_peak_bytes = 0;  // of the optimizer alone
};

/// What the optimizer holds for the parameters that get a gradient.
OptimizerBytes optimizer_of(const capture::Graph& graph, const Optimizer& optimizer, const cost::Profile& profile);

/// Errors: kInternal (a problem that does not simulate).
Expected<TrainingStep> measure_step(ir::StepOp step, const passes::CostModel& costs, const OptimizerBytes& optimizer);

}  // namespace memscale::driver

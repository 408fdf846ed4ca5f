// Fills the report from what planning found out. Changes nothing.
#pragma once

#include "compiler/driver/training_step.h"
#include "compiler/report/report.h"
#include "passes/policy/PlanStep.h"

namespace memscale::driver {

/// Peaks, times, baselines, decisions, warnings. Peaks are those of whole training steps: the optimizer's moment is part of each.
void fill_report(const passes::PlanningResult& planning, const TrainingStep& step, report::Report& report);

}  // namespace memscale::driver

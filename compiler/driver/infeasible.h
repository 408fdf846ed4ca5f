// Why a budget cannot be met, in words: the op, its place in the source, the storages that stand in the way, the lowest peak
// found.
#pragma once

#include <string>

#include "compiler/driver/budget.h"
#include "compiler/driver/training_step.h"

namespace memscale::driver {

/// An error of kInfeasible. Searches for the lowest peak, which takes about as long as planning. `reason`: what the planner said;
/// it is the text where the budget can be met and one policy asked for by name has failed.
Error explain_infeasible(const TrainingStep& step, const Budget& budget, int64_t budget_bytes, const std::string& reason);

}  // namespace memscale::driver

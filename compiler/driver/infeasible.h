// Why a budget cannot be met, in words: the op, its place in the source, the storages that stand in the way, the lowest peak
// found.
#pragma once

#include "compiler/driver/budget.h"
#include "compiler/driver/training_step.h"

namespace memscale::driver {

/// An error of kInfeasible. Searches for the lowest peak, which takes about as long as planning.
Error explain_infeasible(const TrainingStep& step, const Budget& budget, int64_t budget_bytes);

}  // namespace memscale::driver

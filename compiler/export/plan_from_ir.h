// The scheduled step as the plan that the runtime reads.
#pragma once

#include "compiler/support/error.h"
#include "ir/Memscale.h"
#include "runtime/plan_generated.h"

namespace memscale::exporter {

/// Needs the phase scheduled, verified. Registers, instructions, frees, segments, guards and structures are filled in; producer,
/// torch version, profile, predictions, report and state records are the caller's. Errors: kInternal (another phase).
Expected<fb::PlanT> plan_from_ir(ir::StepOp step);

}  // namespace memscale::exporter

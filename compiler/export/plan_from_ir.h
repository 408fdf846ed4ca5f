// The scheduled step as the plan that the runtime reads.
#pragma once

#include <memory>

#include "ir/Memscale.h"

namespace memscale::fb {
struct PlanT;
}

namespace memscale::exporter {

struct PlanDeleter {
  void operator()(fb::PlanT* plan) const;
};
using PlanPtr = std::unique_ptr<fb::PlanT, PlanDeleter>;

/// Needs the phase scheduled, verified. Registers, instructions, frees, segments, guards and structures are filled in; producer, torch
/// version, profile, predictions, report and state records are the caller's. Null after an error diagnostic.
PlanPtr plan_from_ir(ir::StepOp step);

}  // namespace memscale::exporter

// What is known of registers before a plan runs: when each is read for the last time, and whose memory it shows.
#pragma once

#include "runtime/core/program.h"

namespace memscale::runtime {

/// Fills in forward_only_frees, live_into_backward, tangent_used and the last uses of gradients.
void analyse_lifetimes(const fb::PlanT& plan, Program& program);

/// Fills in the segments' version checks, and what outputs and write-backs share with arguments and with each other. Needs
/// live_into_backward.
void analyse_aliases(const fb::PlanT& plan, Program& program);

}  // namespace memscale::runtime

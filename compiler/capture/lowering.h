// The front of the capture: ops whose decomposition depends on the device are lowered here as the target's would be.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <set>
#include <string>

#include "compiler/capture/capture.h"

namespace memscale::capture {

/// Lowers the call on top of `stack` for `target` if it is one that depends on the device: arguments are replaced by results and
/// true is returned. Otherwise the stack is left alone. Where the rule departs from what the archive says, it adds a line to
/// `warnings`.
bool lower_for_target(const c10::OperatorHandle& op, torch::jit::Stack* stack, const Target& target,
                      std::set<std::string>& warnings);

}  // namespace memscale::capture

// Runs the instructions of a bound plan.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "runtime/core/accounting.h"
#include "runtime/core/program.h"

namespace memscale::runtime {

/// What one call of a plan holds: its registers, generator states and memory meter.
struct CallState {
  std::vector<at::Tensor> registers;
  std::vector<at::Generator> slots;
  c10::Device target{c10::DeviceType::CPU};
  std::shared_ptr<Meter> meter;  // null: not measured
};

/// How a stretch of instructions is run.
struct RunOptions {
  bool check_layouts = false;  // compare every result with the plan's expectation
  bool forward_only = false;   // no backward will follow: free everything at its last use
};

/// Runs instructions [begin, end) below autograd, on the current stream. On an exception the state is left as it is; the caller
/// drops it. Errors carry the operator and the source location.
void run_instructions(const fb::PlanT& plan, const Program& program, const std::vector<Instruction>& list, size_t begin,
                      size_t end, CallState& state, const RunOptions& options);

}  // namespace memscale::runtime

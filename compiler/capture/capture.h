// Capture: runs the module once on meta tensors under the dispatcher and writes down forward and backward
// (docs/rationale/capture.md).
#pragma once

#include <string>
#include <vector>

#include "compiler/capture/graph.h"
#include "compiler/import/model.h"
#include "compiler/support/error.h"

namespace memscale::capture {

/// One forward input as --shape gives it.
struct InputSpec {
  std::string name;  // name or decimal position; empty: the next one
  std::vector<int64_t> sizes;
  std::string dtype = "f32";  // as Value::dtype
  bool requires_grad = false;
};

/// What lowering for the target's device depends on.
struct Target {
  std::string device = "cpu";  // "cpu" or "cuda"
  int compute_capability = 0;  // 90 for sm_90; CUDA only
};

struct Options {
  Target target;
  std::vector<InputSpec> inputs;
  bool all_tangents =
      false;  // true: every differentiable output takes an incoming gradient; false: only the loss where output 0 is a scalar
  bool deterministic = false;  // captured under torch.use_deterministic_algorithms(True)
  int threads = 0;             // intra-op threads of the process that will train, CPU targets; 0: this process's
};

/// Errors: kUsage (missing or wrong shapes), kUnsupported (ops without a shape function, all named at once; data-dependent
/// control flow, located), kCompile (no scalar loss or differentiable output, nothing that requires grad, a shape error inside
/// the model).
Expected<Graph> capture(const import::Model& model, const Options& options);

}  // namespace memscale::capture

// One call of a plan, from its forward to the end of its backward. The autograd nodes of the call share it.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <optional>
#include <vector>

#include "runtime/core/guards.h"
#include "runtime/torch/plan_object.h"

namespace memscale::runtime {

class Step {
 public:
  Step(c10::intrusive_ptr<PlanObject> plan, CallState saved, int64_t static_bytes)
      : plan_(std::move(plan)), saved_(std::move(saved)), static_bytes_(static_bytes) {}

  /// Remembers the present version of an argument or output that backward will read.
  void watch(VersionCheck::Kind kind, int32_t index, const at::Tensor& tensor);

  /// Runs one segment. `tangents` (first segment only): one per output with a tangent, undefined if none came in. `keep`: the
  /// graph is retained, so the saved registers must survive. Returns the segment's gradients, in order.
  std::vector<at::Tensor> run_segment(size_t index, std::vector<at::Tensor> tangents, bool keep);

  const PlanObject& plan() const { return *plan_; }
  /// The gradient goes to a leaf, which keeps it: it must own its memory then.
  std::vector<bool> argument_is_leaf;
  /// Checked before every segment: memory that the schemas do not tell to be shared.
  std::vector<VersionCheck> always_check;

 private:
  void begin(std::vector<at::Tensor> tangents, bool keep, int task);
  void check_versions(const std::vector<VersionCheck>& checks) const;
  at::Tensor hand_over(const Segment::Gradient& gradient);

  struct Watched {
    c10::VariableVersion counter;
    uint32_t version;
  };

  std::mutex mutex_;
  c10::intrusive_ptr<PlanObject> plan_;
  std::optional<CallState> saved_;   // what forward left; gone once a backward that does not keep it has begun
  std::optional<CallState> active_;  // the backward in progress
  int active_task_ = -1;
  std::vector<std::pair<int32_t, Watched>> arguments_, outputs_;
  NumericSettings forward_settings_ = numeric_settings();
  int64_t static_bytes_ = 0;
};

/// Raises the peaks of a plan's statistics to what one step has used.
void record_peak(Statistics& statistics, const CallState& state, int64_t static_bytes);

}  // namespace memscale::runtime

// memscale.Plan: a plan as TorchScript sees it, with everything that is made once per plan in a process.
#pragma once

#include <torch/custom_class.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/core/executor.h"
#include "runtime/core/program.h"

namespace memscale::runtime {

/// Counters of one plan, over all its calls.
struct Statistics {
  std::atomic<int64_t> forward_runs{0};
  std::atomic<int64_t> forward_only_runs{0};  // of those, the ones without a backward to follow
  std::atomic<int64_t> backward_runs{0};
  std::atomic<int64_t> retained_backward_runs{0};
  std::atomic<int64_t> fallbacks{0};
  std::atomic<int64_t> materialized_tangents{0};  // outputs without an incoming gradient: zeros were made
  std::atomic<int64_t> restrided_tangents{0};     // incoming gradients copied to the plan's layout
  std::atomic<int64_t> cloned_gradients{0};       // gradients that shared memory with something that stays alive
  std::atomic<int64_t> region_peak_bytes{0};      // highest sum of allocations of one step
  std::atomic<int64_t> static_bytes{0};           // parameters, buffers, inputs and gradients at the start of that step
  std::atomic<int64_t> peak_bytes{0};             // highest sum of the two
};

class PlanObject : public torch::CustomClassHolder {
 public:
  /// Reads, checks and binds. Throws c10::Error.
  explicit PlanObject(at::Tensor bytes);

  const at::Tensor& bytes() const { return bytes_; }
  const fb::PlanT& plan() const { return plan_; }
  const Program& program() const { return program_; }
  Statistics& statistics() { return statistics_; }

  /// Indices into plan().arguments, by role and in plan order.
  const std::vector<int32_t>& parameters() const { return parameters_; }
  const std::vector<int32_t>& buffers() const { return buffers_; }
  const std::vector<int32_t>& inputs() const { return inputs_; }
  const std::vector<int32_t>& constants() const { return constants_; }
  const std::vector<at::ScalarType>& argument_dtypes() const { return argument_dtypes_; }

  /// The constants' tensors on a device, made once.
  std::vector<at::Tensor> constant_tensors(c10::Device device);
  /// Where the target's tensors live in a call with these arguments.
  c10::Device target_device(at::TensorList parameters, at::TensorList inputs) const;

  /// Empty if the tensors are those that the plan was made for; otherwise what differs.
  std::string argument_mismatch(at::TensorList parameters, at::TensorList buffers, at::TensorList inputs) const;
  /// Empty if the process is as the plan takes it for granted; otherwise what differs.
  /// An input in the memory of a buffer, or of another input where forward writes inputs: eager would see the writes. Empty:
  /// none.
  std::string shared_memory(at::TensorList buffers, at::TensorList inputs) const;
  std::string guard_mismatch() const;
  /// Counts a fall-back; the first one of each plan warns.
  void note_fallback(const std::string& why);

  std::map<std::string, int64_t> memory_stats();

  /// Layouts are compared with the plan's until a run of that part has passed.
  std::atomic<bool> forward_checked{false};
  std::atomic<bool> backward_checked{false};

 private:
  at::Tensor bytes_;
  fb::PlanT plan_;
  Program program_;
  Statistics statistics_;
  std::vector<int32_t> parameters_, buffers_, inputs_, constants_;
  std::vector<at::ScalarType> argument_dtypes_;
  std::mutex mutex_;
  std::map<c10::Device, std::vector<at::Tensor>, bool (*)(const c10::Device&, const c10::Device&)> constant_cache_;
};

/// Runs `body`, turning a PlanError into a c10::Error with the same text.
template <class Body>
auto at_border(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const PlanError& e) {
    TORCH_CHECK(false, e.what());
  }
}

}  // namespace memscale::runtime

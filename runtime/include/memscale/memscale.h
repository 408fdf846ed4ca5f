// memscale runtime for C++: load a model.ms.pt and train it, without Python and without torch::jit.
//
//   memscale::Module model = memscale::load("model.ms.pt");
//   torch::optim::AdamW optimizer(model.parameters());
//   torch::Tensor loss = model.forward({ids, labels})[0];
//   loss.backward();
//
// Link libmemscale_runtime.so and libtorch. Loading the library also registers the TorchScript class memscale.Plan and the
// operators memscale::*, so torch::jit::load reads the same file.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#define MEMSCALE_API __attribute__((visibility("default")))

namespace memscale {

/// What a plan expects of one input: dtype, sizes and strides in elements.
struct InputSpec {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

struct LoadOptions {
  bool load_weights = true;           // false: parameters and buffers are meta tensors of the right shapes
  std::optional<c10::Device> device;  // default: the plan's target ("cuda" means the current device)
};

/// A planned model. Copies share parameters, buffers and statistics.
class MEMSCALE_API Module {
 public:
  struct Impl;
  explicit Module(std::shared_ptr<Impl> impl);

  /// Runs the plan. `inputs` are tensors, or tuples, lists and dicts of them, in the order of the original forward. Returns the
  /// outputs' tensors in order. With gradients enabled they carry a grad_fn. Throws c10::Error if the inputs' shapes, strides or
  /// dtypes are not the plan's, or if the process differs from what the plan takes for granted (see guard_failure()).
  std::vector<at::Tensor> forward(const std::vector<c10::IValue>& inputs);

  std::vector<at::Tensor> parameters() const;
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  std::vector<at::Tensor> buffers() const;
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;
  std::vector<InputSpec> inputs() const;

  /// Copies values into a parameter or buffer by name or alias. Throws c10::Error if there is none or its shape differs.
  void load(const std::string& name, const at::Tensor& value);

  /// Empty if the plan may run on these inputs here; otherwise what differs. The C++ API has no original graph to fall back to.
  std::string guard_failure(const std::vector<c10::IValue>& inputs) const;

  /// Counters and bytes by name (docs/formats/plan.md#statistics).
  std::map<std::string, int64_t> memory_stats() const;
  /// The compiler's report, as JSON.
  std::string report() const;

 private:
  std::shared_ptr<Impl> impl_;
};

/// Reads a model.ms.pt. Nothing is unpickled. Throws c10::Error.
MEMSCALE_API Module load(const std::string& path, const LoadOptions& options = {});

/// The runtime's version.
MEMSCALE_API const char* runtime_version();

}  // namespace memscale

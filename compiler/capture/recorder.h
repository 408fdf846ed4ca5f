// The back of the capture: every ATen call that reaches the level below autograd and functionalization is written down and its
// results are computed on meta tensors. While a Recorder::Scope lives, the dispatcher's fallback of key `Fake` is ours.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/capture/capture.h"

namespace memscale::capture {

/// A fault of the captured model, thrown through libtorch's frames and turned into an Error at the library's border.
struct CaptureFault : std::runtime_error {
  CaptureFault(Exit code, const std::string& message, std::string help = {})
      : std::runtime_error(message), code(code), help(std::move(help)) {}
  Exit code;
  std::string help;
};

class Recorder {
 public:
  explicit Recorder(const Target& target);

  /// Makes `meta` (a meta tensor that stands for data existing before the step) an argument of the graph.
  ValueId add_argument(const at::Tensor& meta, Argument argument);

  /// The value of an inner (unwrapped) tensor; a constant is made of a tensor that the recorder has not seen.
  ValueId value_of(const at::Tensor& tensor);
  bool known(const at::Tensor& tensor) const;

  /// Contents of a small tensor that depends on no input, or an undefined tensor.
  at::Tensor shadow_of(const at::Tensor& tensor) const;

  /// The recording itself; `stack` holds the arguments and gets the results.
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  void set_location(const Location& location) { location_ = location; }
  const Location& location() const { return location_; }
  /// From here on calls are backward calls; `locations` maps autograd sequence numbers to the forward call's location.
  void begin_backward(std::map<uint64_t, Location> locations);

  const Target& target() const { return target_; }
  std::set<std::string>& warnings() { return warnings_; }
  Graph& graph() { return graph_; }
  /// Ops met so far that have no shape function. Once it is not empty results are guesses and errors must be disregarded.
  const std::set<std::string>& missing_shape_functions() const { return missing_; }

  /// "file:line: in module: " of the node being run; empty if unknown.
  std::string where() const;

 private:
  ValueId new_value(const at::Tensor& meta);
  ValueId constant_of(const at::Tensor& tensor);
  void compute(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  bool evaluate(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments, std::vector<c10::IValue>* results);
  torch::jit::Stack guess_results(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);
  bool fold_constants(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments, torch::jit::Stack* stack);
  Arg argument(const c10::IValue& value, const c10::Argument& schema);
  Location call_location() const;

  Target target_;
  Graph graph_;
  Location location_;
  bool backward_ = false;
  std::map<uint64_t, Location> backward_locations_;
  std::unordered_map<const c10::TensorImpl*, ValueId> values_;
  std::unordered_map<const c10::StorageImpl*, StorageId> storages_;
  std::unordered_map<ValueId, at::Tensor> shadows_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> constant_twins_;
  std::map<std::string, ValueId> constants_by_content_;
  std::vector<at::Tensor> keep_alive_;  // so that impl and storage addresses stay unique
  std::set<std::string> missing_;
  std::set<std::string> warnings_;
};

/// Dispatch keys of the capture for this thread, and the fallbacks of the process, for as long as it lives. One at a time in a
/// process: a second one waits.
class CaptureScope {
 public:
  explicit CaptureScope(Recorder& recorder);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Runs code that must not be captured (constant folding, meta computations).
class OutsideCapture {
 public:
  OutsideCapture();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
  c10::impl::ExcludeDispatchKeyGuard modes_;
};

}  // namespace memscale::capture

// Reads tests/data/shapes/*.calls: ATen calls recorded from real kernels, with the layout of every operand and result.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace memscale::shapes {

struct RecordedTensor {
  c10::ScalarType dtype = c10::kFloat;
  bool host = false;  // on the CPU beside a CUDA target
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0, storage_bytes = 0;
  int storage = 0;  // equal numbers share memory, within one call
  std::vector<int64_t> contents;
};

/// One argument or result.
struct RecordedValue {
  std::optional<RecordedTensor> tensor;
  std::optional<std::vector<RecordedValue>> list;
  std::string text;  // neither tensor nor list: the token
};

struct RecordedCall {
  std::string line;
  std::string name;  // "aten::add.Tensor"
  std::vector<RecordedValue> arguments, results;
};

/// Throws std::runtime_error naming file and line where the text is not understood.
std::vector<RecordedCall> read_calls(const std::string& path);

/// Makes the operands of a call.
class Materializer {
 public:
  /// Device kMeta gives meta tensors, host scalars apart; kCPU gives real ones, filled with the recorded contents, else with numbers in (0, 1).
  explicit Materializer(c10::Device device) : device_(device) {}
  /// The boxed arguments of the call.
  torch::jit::Stack arguments(const c10::OperatorHandle& op, const RecordedCall& call);
  /// How `result` differs from what was recorded; empty if it does not.
  std::string difference(const c10::IValue& result, const RecordedValue& recorded);

 private:
  c10::IValue value(const RecordedValue& recorded, const c10::Type& type);
  at::Tensor tensor(const RecordedTensor& recorded);

  c10::Device device_;
  std::map<int, c10::Storage> storages_;
};

}  // namespace memscale::shapes

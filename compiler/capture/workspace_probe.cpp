// Runs single ATen calls on zero-filled CPU tensors and watches c10's allocator through the profiler's memory hook. Needs CPU
// kernels; takes up to twice the operand bytes of one call at a time.
#include "compiler/capture/workspace_probe.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <map>
#include <set>

#include "compiler/capture/dtype_names.h"

namespace memscale::capture {
namespace {

constexpr int64_t kMaxProbedBytes = int64_t{256} << 20;  // operands and results of one call
constexpr int64_t kMaxProbedInAll = int64_t{2} << 30;    // of all calls that are run: some seconds

// Ops that allocate nothing beside their results, and so need no run: views, elementwise kernels, plain matrix products, fills.
const std::set<std::string> kPlain = {
    "_conj",
    "_neg_view",
    "_reshape_alias",
    "_to_copy",
    "_unsafe_view",
    "abs",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "alias",
    "arange",
    "as_strided",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clone",
    "copy",
    "cos",
    "detach",
    "diagonal",
    "div",
    "elu",
    "empty",
    "empty_like",
    "empty_strided",
    "eq",
    "erf",
    "exp",
    "expand",
    "fill",
    "full",
    "full_like",
    "ge",
    "gelu",
    "gelu_backward",
    "gt",
    "hardswish",
    "hardtanh",
    "hardtanh_backward",
    "le",
    "leaky_relu",
    "leaky_relu_backward",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "masked_fill",
    "maximum",
    "minimum",
    "mish",
    "mm",
    "mul",
    "ne",
    "neg",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "permute",
    "pow",
    "reciprocal",
    "relu",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "select",
    "sigmoid",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "sin",
    "slice",
    "softplus",
    "softplus_backward",
    "split",
    "split_with_sizes",
    "sqrt",
    "squeeze",
    "sub",
    "t",
    "tanh",
    "tanh_backward",
    "threshold_backward",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "view_as_complex",
    "view_as_real",
    "zeros",
    "zeros_like",
};

class Meter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    live += alloc_size;
    peak = std::max(peak, live);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t live = 0, peak = 0;
};

struct Signature {
  std::string text;
  int64_t bytes = 0;
};

void add_layout(const Graph& graph, ValueId id, Signature& signature) {
  if (id == kNoValue) {
    signature.text += "-;";
    return;
  }
  const Value& value = graph.values[id];
  signature.text += value.dtype;
  for (const int64_t size : value.sizes) signature.text += "," + std::to_string(size);
  for (const int64_t stride : value.strides) signature.text += "/" + std::to_string(stride);
  signature.text += ";";
  signature.bytes += graph.storages[value.storage].bytes;
}

Signature signature_of(const Graph& graph, const Call& call) {
  Signature signature{call.op + "." + call.overload + ":", 0};
  for (const Arg& arg : call.args) {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          std::string& text = signature.text;
          if constexpr (std::is_same_v<T, Operand>)
            add_layout(graph, value.value, signature);
          else if constexpr (std::is_same_v<T, OperandList>)
            for (const ValueId id : value.values) add_layout(graph, id, signature);
          else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool>)
            text += std::to_string(value) + ";";
          else if constexpr (std::is_same_v<T, std::string>)
            text += value + ";";
          else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>> ||
                             std::is_same_v<T, std::vector<bool>>) {
            for (const auto element : value) text += std::to_string(element) + ",";
            text += ";";
          } else
            text += "?;";
        },
        arg);
  }
  for (const Result& result : call.results)
    for (const ValueId id : result.values)
      if (id != kNoValue) signature.bytes += graph.storages[graph.values[id].storage].bytes;
  return signature;
}

at::Tensor zeros_like(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  const c10::ScalarType dtype = *dtype_from_name(value.dtype);
  const int64_t elements = graph.storages[value.storage].bytes / static_cast<int64_t>(c10::elementSize(dtype));
  return at::zeros({elements}, dtype).as_strided(value.sizes, value.strides, value.offset);
}

c10::IValue real_argument(const Graph& graph, const Arg& arg, const c10::TypePtr& type) {
  return std::visit(
      [&](const auto& value) -> c10::IValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, None>)
          return {};
        else if constexpr (std::is_same_v<T, Operand>)
          return zeros_like(graph, value.value);
        else if constexpr (std::is_same_v<T, OperandList>) {
          if (type->isSubtypeOf(*c10::ListType::ofTensors())) {
            c10::List<at::Tensor> list;
            for (const ValueId id : value.values) list.push_back(zeros_like(graph, id));
            return list;
          }
          c10::List<std::optional<at::Tensor>> list;
          for (const ValueId id : value.values)
            list.push_back(id == kNoValue ? std::nullopt : std::optional<at::Tensor>(zeros_like(graph, id)));
          return list;
        } else if constexpr (std::is_same_v<T, Complex>)
          return c10::complex<double>(value.re, value.im);
        else if constexpr (std::is_same_v<T, DeviceArg>)
          return c10::Device(c10::kCPU);
        else if constexpr (std::is_same_v<T, std::vector<bool>>) {
          c10::List<bool> list;
          for (const bool element : value) list.push_back(element);
          return list;
        } else
          return value;
      },
      arg);
}

int64_t measure(const Graph& graph, const Call& call) {
  try {
    const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(call.op.c_str(), call.overload.c_str());
    torch::jit::Stack stack;
    for (size_t i = 0; i < call.args.size(); ++i)
      stack.push_back(real_argument(graph, call.args[i], op.schema().arguments()[i].type()));
    const torch::jit::Stack alive = stack;
    const auto meter = std::make_shared<Meter>();
    c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(&stack);
    return meter->peak - meter->live;
  } catch (const std::exception&) {
    return -1;  // the op wants values that zeros are not: its workspace stays unknown
  }
}

}  // namespace

void measure_workspaces(Graph& graph) {
  std::map<std::string, int64_t> known;
  int64_t probed = 0;
  for (Call& call : graph.calls) {
    if (call.rng || !call.op.starts_with("aten::") || kPlain.count(call.op.substr(6))) continue;
    const Signature signature = signature_of(graph, call);
    if (signature.bytes > kMaxProbedBytes) continue;
    const auto [entry, fresh] = known.try_emplace(signature.text, -1);
    if (fresh && probed < kMaxProbedInAll) {
      probed += signature.bytes;
      entry->second = measure(graph, call);
    }
    call.workspace_bytes = entry->second;
  }
}

}  // namespace memscale::capture

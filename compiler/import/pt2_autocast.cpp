// Autocast policies of LibTorch 2.11 for cpu and cuda. An op counts as listed if the dispatcher has an autocast kernel for it;
// the tables below only say which policy a listed op has. tests/unit/import holds the number of listed ops, so that a LibTorch
// with other lists is noticed.
#include "compiler/import/pt2_autocast.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace memscale::import {
namespace {

template <size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 21> kCpuLower = {"conv1d",
                                                        "conv2d",
                                                        "conv3d",
                                                        "bmm",
                                                        "mm",
                                                        "linalg_vecdot",
                                                        "baddbmm",
                                                        "addmm",
                                                        "_addmm_activation",
                                                        "addbmm",
                                                        "linear",
                                                        "_convolution",
                                                        "matmul",
                                                        "conv_tbc",
                                                        "mkldnn_rnn_layer",
                                                        "conv_transpose1d",
                                                        "conv_transpose2d",
                                                        "conv_transpose3d",
                                                        "prelu",
                                                        "scaled_dot_product_attention",
                                                        "_native_multi_head_attention"};
constexpr std::array<std::string_view, 3> kCpuPromote = {"stack", "cat", "index_copy"};

constexpr std::array<std::string_view, 35> kCudaLower = {"_convolution",
                                                         "conv1d",
                                                         "conv2d",
                                                         "conv3d",
                                                         "conv_tbc",
                                                         "conv_transpose1d",
                                                         "conv_transpose2d",
                                                         "conv_transpose3d",
                                                         "convolution",
                                                         "prelu",
                                                         "addmm",
                                                         "addmv",
                                                         "addr",
                                                         "matmul",
                                                         "einsum",
                                                         "mm",
                                                         "mv",
                                                         "linalg_vecdot",
                                                         "linear",
                                                         "addbmm",
                                                         "baddbmm",
                                                         "bmm",
                                                         "chain_matmul",
                                                         "linalg_multi_dot",
                                                         "_thnn_fused_lstm_cell",
                                                         "_thnn_fused_gru_cell",
                                                         "lstm_cell",
                                                         "gru_cell",
                                                         "rnn_tanh_cell",
                                                         "rnn_relu_cell",
                                                         "_scaled_dot_product_flash_attention",
                                                         "scaled_dot_product_attention",
                                                         "cudnn_convolution",
                                                         "cudnn_convolution_transpose",
                                                         "_cudnn_rnn"};
constexpr std::array<std::string_view, 8> kCudaFloatDtype = {
    "prod", "softmax", "log_softmax", "cumprod", "cumsum", "linalg_vector_norm", "linalg_matrix_norm", "sum"};
constexpr std::array<std::string_view, 11> kCudaPromote = {
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "tensordot", "scatter_add"};
constexpr std::array<std::string_view, 3> kCudaRefuse = {"binary_cross_entropy", "norm", "_cudnn_rnn"};

// Ops that LibTorch decomposes, where no part of the decomposition has an autocast kernel: their operands stay as they are.
constexpr std::array<std::string_view, 56> kPlain = {"reshape",
                                                     "reshape_as",
                                                     "flatten",
                                                     "unflatten",
                                                     "view_as",
                                                     "contiguous",
                                                     "to",
                                                     "type_as",
                                                     "size",
                                                     "dropout",
                                                     "dropout_",
                                                     "feature_dropout",
                                                     "chunk",
                                                     "split",
                                                     "tensor_split",
                                                     "expand_as",
                                                     "narrow",
                                                     "movedim",
                                                     "moveaxis",
                                                     "swapaxes",
                                                     "swapdims",
                                                     "numpy_T",
                                                     "matrix_H",
                                                     "mT",
                                                     "mH",
                                                     "adjoint",
                                                     "where",
                                                     "broadcast_to",
                                                     "broadcast_tensors",
                                                     "meshgrid",
                                                     "ravel",
                                                     "select",
                                                     "index",
                                                     "squeeze",
                                                     "repeat_interleave",
                                                     "tile",
                                                     "batch_norm",
                                                     "instance_norm",
                                                     "max_pool1d",
                                                     "max_pool2d",
                                                     "avg_pool1d",
                                                     "adaptive_avg_pool1d",
                                                     "adaptive_avg_pool2d",
                                                     "relu6",
                                                     "selu",
                                                     "multiply",
                                                     "divide",
                                                     "subtract",
                                                     "negative",
                                                     "absolute",
                                                     "concat",
                                                     "lift_fresh",
                                                     "unsafe_chunk",
                                                     "var",
                                                     "std",
                                                     "one_hot"};
// Decompositions that are plain on the cpu, where their parts have no autocast kernel.
constexpr std::array<std::string_view, 6> kCpuPlain = {"layer_norm", "group_norm",  "rms_norm",
                                                       "softmax",    "log_softmax", "square"};

}  // namespace

CastPolicy cast_policy(const c10::FunctionSchema& schema, c10::DeviceType device) {
  const bool cpu = device == c10::DeviceType::CPU;
  const std::string& full = schema.name();
  std::string_view name = full;
  if (name.substr(0, 6) == "aten::") name.remove_prefix(6);
  std::optional<c10::OperatorHandle> op = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  if (!op) return CastPolicy::kNone;  // TorchScript's own ops on numbers
  if (!op->hasKernelForDispatchKey(cpu ? c10::DispatchKey::AutocastCPU : c10::DispatchKey::AutocastCUDA)) {
    bool decomposed = op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    if (!decomposed || holds(kPlain, name) || (cpu && holds(kCpuPlain, name))) return CastPolicy::kNone;
    return CastPolicy::kRefuse;
  }
  if (cpu) {
    if (holds(kCpuLower, name)) return CastPolicy::kLower;
    return holds(kCpuPromote, name) ? CastPolicy::kPromote : CastPolicy::kFloat;
  }
  if (holds(kCudaRefuse, name)) return CastPolicy::kRefuse;
  if (holds(kCudaLower, name)) return CastPolicy::kLower;
  if (holds(kCudaFloatDtype, name)) return CastPolicy::kFloatDtype;
  return holds(kCudaPromote, name) ? CastPolicy::kPromote : CastPolicy::kFloat;
}

}  // namespace memscale::import

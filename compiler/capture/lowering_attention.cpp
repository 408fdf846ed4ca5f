// scaled_dot_product_attention: which kernel the target's dispatch picks, and the padding and mask conversion around it.
#include <ATen/ATen.h>

#include "compiler/capture/lowering_rules.h"
#include "compiler/capture/recorder.h"

namespace memscale::capture {
namespace {

Attention attention_arguments(const torch::jit::Stack& stack, const c10::FunctionSchema& schema) {
  const auto* arguments = &stack[stack.size() - schema.arguments().size()];
  return {
      arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor(),           arguments[3].toOptional<at::Tensor>(),
      arguments[4].toDouble(), arguments[5].toBool(),   arguments[6].toOptional<double>(), arguments[7].toBool()};
}

void replace(torch::jit::Stack& stack, const c10::FunctionSchema& schema, at::Tensor result) {
  torch::jit::drop(stack, schema.arguments().size());
  stack.emplace_back(std::move(result));
}

/// A boolean mask (true: take part) becomes an additive one, as ATen does before every kernel; `excluded` is what masked places
/// get.
std::optional<at::Tensor> additive(const std::optional<at::Tensor>& mask, at::ScalarType dtype, double excluded) {
  if (!mask || mask->scalar_type() != at::kBool) return mask;
  return at::where(*mask, 0.0, at::scalar_tensor(excluded, at::TensorOptions().dtype(dtype).device(mask->device())));
}

/// A CPU tensor with the layout of `tensor` and no memory behind it: enough for ATen's own choice of kernel, which reads metadata
/// alone.
at::Tensor cpu_stand_in(const at::Tensor& tensor) {
  static char nothing[64];
  return at::from_blob(nothing, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU).requires_grad(false))
      .set_requires_grad(tensor.requires_grad());
}

at::Tensor padded_to_8(const at::Tensor& tensor) {
  const int64_t last = tensor.size(-1);
  if (last % 8 == 0) return tensor;
  return at::pad(tensor, {0, 8 - last % 8});
}

/// The memory-efficient kernel wants rows of the bias aligned, and the bias expanded to all heads.
at::Tensor aligned_bias(const at::Tensor& bias, const Attention& a) {
  bool aligned = bias.stride(-1) == 1;
  for (int64_t dim = 0; dim + 1 < bias.dim(); ++dim) aligned = aligned && bias.stride(dim) % 8 == 0;
  at::Tensor result = bias;
  if (!aligned) {
    const int64_t last = bias.size(-1);
    result = at::pad(bias, {0, 8 - last % 8}).slice(-1, 0, last);
  }
  return result.expand({a.query.size(0), a.query.size(1), a.query.size(2), a.key.size(2)});
}

}  // namespace

AttentionKernel choose_attention_sm90(const Attention& a, bool deterministic) {
  const bool half = a.query.scalar_type() == at::kHalf || a.query.scalar_type() == at::kBFloat16;
  const bool single = a.query.scalar_type() == at::kFloat;
  if (a.query.dim() != 4 || (!half && !single)) return AttentionKernel::kMath;
  const int64_t head = a.query.size(-1), queries = a.query.size(-2), keys = a.key.size(-2);
  const bool grouped = a.query.size(1) != a.key.size(1);
  const bool same_head = head == a.value.size(-1);
  const bool dense_last = a.query.stride(-1) == 1 && a.key.stride(-1) == 1 && a.value.stride(-1) == 1;
  if (queries == 0 || keys == 0 || !dense_last) return AttentionKernel::kMath;
  const bool mask_grad = a.mask && a.mask->requires_grad();
  if (!deterministic && half && same_head && head % 8 == 0 && head <= 256 && !mask_grad && !(queries == 1 && a.dropout_p > 0))
    return AttentionKernel::kCudnn;
  if (half && same_head && head <= 256 && !a.mask && !(a.is_causal && queries != keys)) return AttentionKernel::kFlash;
  const int64_t alignment = half ? 8 : 4;
  if (!grouped && head % alignment == 0 && a.value.size(-1) % alignment == 0) return AttentionKernel::kEfficient;
  return AttentionKernel::kMath;
}

bool lower_attention_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  const Attention a = attention_arguments(stack, schema);
  int64_t choice;
  {
    OutsideCapture outside;
    std::optional<at::Tensor> mask;
    if (a.mask) mask = cpu_stand_in(*a.mask);
    choice = at::_fused_sdp_choice(cpu_stand_in(a.query), cpu_stand_in(a.key), cpu_stand_in(a.value), mask, a.dropout_p,
                                   a.is_causal, a.scale, a.enable_gqa);
  }
  if (choice != static_cast<int64_t>(at::SDPBackend::flash_attention)) return false;
  const auto mask = additive(a.mask, a.query.scalar_type(), -std::numeric_limits<double>::infinity());
  replace(stack, schema,
          std::get<0>(
              at::_scaled_dot_product_flash_attention_for_cpu(a.query, a.key, a.value, a.dropout_p, a.is_causal, mask, a.scale)));
  return true;
}

bool lower_attention_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context) {
  const Attention a = attention_arguments(stack, schema);
  if (context.target.compute_capability != 90)
    throw CaptureFault(Exit::kUnsupported,
                       "scaled_dot_product_attention: which kernel a device of compute capability " +
                           std::to_string(context.target.compute_capability / 10) + "." +
                           std::to_string(context.target.compute_capability % 10) + " picks is not known; known: 9.0",
                       "compile for --target h200");
  const bool compute_logsumexp =
      at::GradMode::is_enabled() && (a.query.requires_grad() || a.key.requires_grad() || a.value.requires_grad());
  const at::Context& process = at::globalContext();
  switch (choose_attention_sm90(a, process.deterministicAlgorithms() && !process.deterministicAlgorithmsWarnOnly())) {
    case AttentionKernel::kCudnn: {
      const auto mask = additive(a.mask, a.query.scalar_type(), -65504.0);
      replace(stack, schema,
              std::get<0>(at::_scaled_dot_product_cudnn_attention(a.query, a.key, a.value, mask, compute_logsumexp, a.dropout_p,
                                                                  a.is_causal,
                                                                  /*return_debug_mask=*/false, a.scale)));
      return true;
    }
    case AttentionKernel::kFlash: {
      const int64_t head = a.query.size(-1);
      const double scale = a.scale ? *a.scale : 1.0 / std::sqrt(static_cast<double>(head));
      at::Tensor out =
          std::get<0>(at::_scaled_dot_product_flash_attention(padded_to_8(a.query), padded_to_8(a.key), padded_to_8(a.value),
                                                              a.dropout_p, a.is_causal, /*return_debug_mask=*/false, scale));
      if (head % 8 != 0) out = out.slice(-1, 0, head);
      replace(stack, schema, out);
      return true;
    }
    case AttentionKernel::kEfficient: {
      auto mask = additive(a.mask, a.query.scalar_type(), -std::numeric_limits<double>::infinity());
      if (mask) mask = aligned_bias(*mask, a);
      replace(stack, schema,
              std::get<0>(at::_scaled_dot_product_efficient_attention(a.query, a.key, a.value, mask, compute_logsumexp,
                                                                      a.dropout_p, a.is_causal, a.scale)));
      return true;
    }
    case AttentionKernel::kMath:
      return false;
  }
  return false;
}

}  // namespace memscale::capture

// The rules of target-aware lowering, by op. Each reads the arguments on top of the stack; it returns false to let ATen's own
// composite decomposition run, or replaces the arguments by the results and returns true.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <set>
#include <string>

#include "compiler/capture/capture.h"

namespace memscale::capture {

struct LoweringContext {
  const Target& target;
  std::set<std::string>& warnings;  // for the user: where a rule departs from the archive
};

/// The arguments of scaled_dot_product_attention.
struct Attention {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;
  double dropout_p = 0;
  bool is_causal = false;
  std::optional<double> scale;
  bool enable_gqa = false;
};

/// Numbered as at::SDPBackend.
enum class AttentionKernel { kMath = 0, kFlash = 1, kEfficient = 2, kCudnn = 3 };

/// The choice of torch 2.11 on compute capability 9.0 with cuDNN 9.15 or newer: cuDNN first, then flash, memory-efficient, math.
/// Checked against torch._fused_sdp_choice on an H200 over 5,184 cases (tests/data/sdpa_choice_sm90.json).
/// `deterministic`: under torch.use_deterministic_algorithms, which takes cuDNN out.
AttentionKernel choose_attention_sm90(const Attention& attention, bool deterministic);

bool lower_attention_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_attention_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_convolution(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_bernoulli_in_place(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool refuse_scattered_normal(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
/// Products over a dimension: their derivative takes another way where an element is zero.
bool refuse_differentiated_product(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool refuse_sparse_gradient(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_lstm_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool refuse_recurrent_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool refuse_recurrent_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_dropout_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);
bool lower_batch_norm_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);

}  // namespace memscale::capture

// Target-aware lowering: which attention, dropout, batch-norm and recurrent kernels the target's own dispatch would choose. Each
// rule restates the choice that ATen's composite op makes on that device, for tensors of the capture, which live on the meta
// device.
#include "compiler/capture/lowering.h"

#include <ATen/ATen.h>

#include <string_view>
#include <unordered_map>

#include "compiler/capture/lowering_rules.h"

namespace memscale::capture {
namespace {

using Rule = bool (*)(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context);

const std::unordered_map<std::string_view, Rule>& rules(const Target& target) {
  static const std::unordered_map<std::string_view, Rule> cpu = {
      {"aten::scaled_dot_product_attention", lower_attention_cpu},
      {"aten::lstm", refuse_recurrent_cpu},
      {"aten::gru", refuse_recurrent_cpu},
      {"aten::rnn_tanh", refuse_recurrent_cpu},
      {"aten::rnn_relu", refuse_recurrent_cpu},
      {"aten::gru_cell", refuse_recurrent_cpu},
      {"aten::_convolution", lower_convolution},
      {"aten::bernoulli_", lower_bernoulli_in_place},
      {"aten::normal_", refuse_scattered_normal},
      {"aten::prod", refuse_differentiated_product},
      {"aten::cumprod", refuse_differentiated_product},
      {"aten::embedding", refuse_sparse_gradient},
      {"aten::_embedding_bag", refuse_sparse_gradient},
  };
  static const std::unordered_map<std::string_view, Rule> cuda = {
      {"aten::scaled_dot_product_attention", lower_attention_cuda},
      {"aten::_convolution", lower_convolution},
      {"aten::bernoulli_", lower_bernoulli_in_place},
      {"aten::prod", refuse_differentiated_product},
      {"aten::cumprod", refuse_differentiated_product},
      {"aten::embedding", refuse_sparse_gradient},
      {"aten::_embedding_bag", refuse_sparse_gradient},
      {"aten::dropout", lower_dropout_cuda},
      {"aten::_batch_norm_impl_index", lower_batch_norm_cuda},
      {"aten::lstm", refuse_recurrent_cuda},
      {"aten::gru", refuse_recurrent_cuda},
      {"aten::rnn_tanh", refuse_recurrent_cuda},
      {"aten::rnn_relu", refuse_recurrent_cuda},
  };
  return target.device == "cuda" ? cuda : cpu;
}

}  // namespace

bool lower_for_target(const c10::OperatorHandle& op, torch::jit::Stack* stack, const Target& target,
                      std::set<std::string>& warnings) {
  const auto& table = rules(target);
  const auto rule = table.find(op.operator_name().name);
  return rule != table.end() && rule->second(*stack, op.schema(), {target, warnings});
}

}  // namespace memscale::capture

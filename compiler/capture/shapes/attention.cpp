// Fused attention kernels. Tensors are (batch, heads, tokens, head size). CUDA layouts as recorded on an H200 with torch 2.11.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

std::vector<int64_t> output_sizes(const at::Tensor& query, const at::Tensor& value) {
  return {query.size(0), query.size(1), query.size(2), value.size(3)};
}

void flash_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0);
  const at::Tensor sums = meta({query.size(0), query.size(2), query.size(1)}, accumulate_type(query)).transpose(1, 2);
  a.give({meta_like(query), sums});
}

void flash_cpu_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(1), key = a.tensor(2), value = a.tensor(3);
  a.give({meta_transposed(query.sizes(), query), meta_transposed(key.sizes(), key), meta_transposed(value.sizes(), value)});
}

void flash_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0), key = a.tensor(1);
  a.give({meta_like(query.transpose(1, 2)).transpose(1, 2), meta({query.size(0), query.size(1), query.size(2)}, c10::kFloat),
          at::Tensor(), at::Tensor(), query.size(2), key.size(2), meta({2}, c10::kUInt64), meta({}, c10::kUInt64),
          meta({0}, query)});
}

template <size_t kFirst>
void gradients_like_inputs(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  std::vector<c10::IValue> results;
  for (size_t i = kFirst; i < kFirst + 3; ++i) results.emplace_back(meta_like(a.tensor(i).transpose(1, 2)).transpose(1, 2));
  a.give(std::move(results));
}

void efficient_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0);
  const int64_t tokens = query.size(2), rows = a[4].toBool() ? (tokens + 31) / 32 * 32 : 0;
  a.give({meta_transposed(output_sizes(query, a.tensor(2)), query), meta({query.size(0), query.size(1), rows}, c10::kFloat),
          meta({}, c10::kLong), meta({}, c10::kLong)});
}

void efficient_cuda_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(1), key = a.tensor(2), value = a.tensor(3), bias = a.tensor(4);
  c10::IValue bias_gradient = at::Tensor();
  if (a.flag(10, 3) && bias.defined()) {
    // rows aligned to 16 elements, the padding cut off again by a slice
    const int64_t last = bias.size(-1), padded = last % 16 == 0 ? last : last + 16 - last % 16;
    std::vector<int64_t> sizes = bias.sizes().vec();
    sizes.back() = padded;
    bias_gradient = meta(sizes, bias).slice(-1, 0, last);
  }
  a.give({if_wanted(a.flag(10, 0), meta_transposed(query.sizes(), query)),
          if_wanted(a.flag(10, 1), meta_transposed(key.sizes(), key)),
          if_wanted(a.flag(10, 2), meta_transposed(value.sizes(), value)), bias_gradient});
}

void cudnn(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0), key = a.tensor(1), value = a.tensor(2);
  const at::Tensor like = query.size(3) == value.size(3) ? query : query.slice(3, 0, 1).expand({-1, -1, -1, value.size(3)});
  a.give({meta_like(like), if_wanted(a[4].toBool(), meta({query.size(0), query.size(1), query.size(2), 1}, c10::kFloat)),
          at::Tensor(), at::Tensor(), query.size(2), key.size(2), meta({}, c10::kLong), meta({}, c10::kLong), at::Tensor()});
}

void cudnn_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(1)), meta_like(a.tensor(2)), meta_like(a.tensor(3))});
}

/// Tensors are (batch, tokens, heads, head size) here.
void flash_forward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0);
  if (a.tensor(3).defined())
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "_flash_attention_forward of packed sequences (cum_seq_q): no shape function; pass padded batches");
  a.give({meta_like(query), meta({query.size(0), query.size(2), query.size(1)}, c10::kFloat), meta({2}, c10::kUInt64),
          meta({}, c10::kUInt64), meta({0}, query)});
}

template <size_t kFirst>
void gradients(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(kFirst)), meta_like(a.tensor(kFirst + 1)), meta_like(a.tensor(kFirst + 2))});
}

/// query, key, value, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, custom_mask_type,
/// compute_log_sumexp, ...
void efficient_forward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor query = a.tensor(0), key = a.tensor(1), value = a.tensor(2);
  if (a.tensor(4).defined())
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "_efficient_attention_forward of packed sequences (cu_seqlens_q): no shape function; pass padded batches");
  const int64_t rows = a[10].toBool() ? (query.size(1) + 31) / 32 * 32 : 0;
  a.give({meta({query.size(0), query.size(1), query.size(2), value.size(3)}, query),
          meta({query.size(0), query.size(2), rows}, c10::kFloat), meta({}, c10::kLong), meta({}, c10::kLong), query.size(1),
          key.size(1)});
}

/// grad_out, query, key, value, bias, ...; tensors that share one storage get gradients that do.
void efficient_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor bias = a.tensor(4);
  c10::IValue bias_gradient = at::Tensor();
  if (bias.defined() && a[op.schema().argumentIndexWithName("bias_requires_grad").value()].toBool()) {
    const int64_t last = bias.size(-1);
    Sizes sizes = bias.sizes().vec();
    sizes.back() = (last + 15) / 16 * 16;
    bias_gradient = meta(sizes, bias).slice(-1, 0, last);
  }
  a.give({meta(a.tensor(1).sizes(), a.tensor(1)), meta(a.tensor(2).sizes(), a.tensor(2)), meta(a.tensor(3).sizes(), a.tensor(3)),
          bias_gradient});
}

}  // namespace

void add_attention(Tables& tables) {
  tables.cpu["aten::_scaled_dot_product_flash_attention_for_cpu"] = flash_cpu;
  tables.cpu["aten::_scaled_dot_product_flash_attention_for_cpu_backward"] = flash_cpu_backward;
  tables.cuda["aten::_scaled_dot_product_flash_attention"] = flash_cuda;
  tables.cuda["aten::_scaled_dot_product_flash_attention_backward"] = gradients_like_inputs<1>;
  tables.cuda["aten::_scaled_dot_product_efficient_attention"] = efficient_cuda;
  tables.cuda["aten::_scaled_dot_product_efficient_attention_backward"] = efficient_cuda_backward;
  tables.cuda["aten::_scaled_dot_product_cudnn_attention"] = cudnn;
  tables.cuda["aten::_scaled_dot_product_cudnn_attention_backward"] = cudnn_backward;
  tables.cuda["aten::_flash_attention_forward"] = flash_forward;
  tables.cuda["aten::_flash_attention_backward"] = gradients<1>;
  tables.cuda["aten::_efficient_attention_forward"] = efficient_forward;
  tables.cuda["aten::_efficient_attention_backward"] = efficient_backward;
}

}  // namespace memscale::shapes

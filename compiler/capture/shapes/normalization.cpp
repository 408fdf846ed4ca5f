// Batch, layer and group normalisation, forward and backward.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// On the CPU statistics are float only where half inputs meet float parameters; on CUDA always.
c10::ScalarType cpu_statistics(const at::Tensor& input, const at::Tensor& weight) {
  return weight.defined() && weight.scalar_type() != input.scalar_type() ? weight.scalar_type() : input.scalar_type();
}

template <bool kCuda>
void batch_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const int64_t channels = a[5].toBool() ? input.size(1) : 0;
  const at::Tensor running = a.tensor(3).defined() ? a.tensor(3) : a.tensor(1);
  const c10::ScalarType dtype = kCuda ? accumulate_type(input) : cpu_statistics(input, a.tensor(1).defined() ? a.tensor(1) : running);
  a.give({meta(input.sizes(), input, input.suggest_memory_format()), meta({channels}, dtype), meta({channels}, dtype)});
}

template <bool kCuda>
void batch_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(2).defined() ? a.tensor(2) : input;
  const bool training = a[7].toBool();
  // The CUDA kernel for running statistics (eval) writes contiguous gradients whatever the input's format.
  const auto format = kCuda && !training ? at::MemoryFormat::Contiguous : input.suggest_memory_format();
  a.give({if_wanted(a.flag(9, 0), meta(input.sizes(), input, format)), if_wanted(a.flag(9, 1), meta({input.size(1)}, weight)),
          if_wanted(a.flag(9, 2), meta({input.size(1)}, weight))});
}

void cudnn_batch_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight = a.tensor(1);
  const int64_t channels = a[5].toBool() ? input.size(1) : 0;
  // cuDNN reserves memory only in its persistent NHWC half-precision mode, whose size the device alone knows; elsewhere it is empty.
  a.give({meta(input.sizes(), input, input.suggest_memory_format()), meta({channels}, weight), meta({channels}, weight), meta({0}, c10::kByte)});
}

void cudnn_batch_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight = a.tensor(2);
  a.give({meta(input.sizes(), input, input.suggest_memory_format()), meta({input.size(1)}, weight), meta({input.size(1)}, weight)});
}

std::vector<int64_t> row_shape(const at::Tensor& input, size_t normalized) {
  std::vector<int64_t> sizes = input.sizes().vec();
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}

template <bool kCuda>
void layer_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const std::vector<int64_t> rows = row_shape(input, a[1].toIntVector().size());
  const c10::ScalarType dtype = kCuda ? accumulate_type(input) : cpu_statistics(input, a.tensor(2));
  a.give({meta(input.sizes(), input), meta(rows, dtype), meta(rows, dtype)});
}

void layer_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(5).defined() ? a.tensor(5) : input;
  const std::vector<int64_t> shape = a[2].toIntVector();
  a.give({if_wanted(a.flag(7, 0), meta(input.sizes(), input)), if_wanted(a.flag(7, 1), meta(shape, weight)), if_wanted(a.flag(7, 2), meta(shape, weight))});
}

void rms_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(input.sizes(), input), meta(row_shape(input, a[1].toIntVector().size()), accumulate_type(input))});
}

void rms_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(4);
  a.give({if_wanted(a.flag(5, 0), meta(input.sizes(), input)),
          if_wanted(a.flag(5, 1) && weight.defined(), meta(a[2].toIntVector(), weight.defined() ? weight : input))});
}

template <bool kCuda>
void group_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const int64_t batch = a[3].toInt(), groups = a[6].toInt();
  const c10::ScalarType dtype = cpu_statistics(input, a.tensor(1));
  a.give({meta(input.sizes(), input, input.suggest_memory_format()), meta({batch, groups}, dtype), meta({batch, groups}, dtype)});
}

void group_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(4).defined() ? a.tensor(4) : input;
  const int64_t channels = a[6].toInt();
  a.give({if_wanted(a.flag(9, 0), meta(input.sizes(), input, input.suggest_memory_format())), if_wanted(a.flag(9, 1), meta({channels}, weight)),
          if_wanted(a.flag(9, 2), meta({channels}, weight))});
}

}  // namespace

void add_normalization(Table& cpu, Table& cuda) {
  cpu["aten::native_batch_norm"] = batch_norm<false>;
  cuda["aten::native_batch_norm"] = batch_norm<true>;
  cpu["aten::native_batch_norm_backward"] = batch_norm_backward<false>;
  cuda["aten::native_batch_norm_backward"] = batch_norm_backward<true>;
  cuda["aten::cudnn_batch_norm"] = cudnn_batch_norm;
  cuda["aten::cudnn_batch_norm_backward"] = cudnn_batch_norm_backward;
  cpu["aten::native_layer_norm"] = layer_norm<false>;
  cuda["aten::native_layer_norm"] = layer_norm<true>;
  cpu["aten::native_layer_norm_backward"] = cuda["aten::native_layer_norm_backward"] = layer_norm_backward;
  cuda["aten::_fused_rms_norm"] = rms_norm;
  cuda["aten::_fused_rms_norm_backward"] = rms_norm_backward;
  cpu["aten::native_group_norm"] = group_norm<false>;
  cuda["aten::native_group_norm"] = group_norm<true>;
  cpu["aten::native_group_norm_backward"] = cuda["aten::native_group_norm_backward"] = group_norm_backward;
}

}  // namespace memscale::shapes

// Batch, layer, RMS and group normalisation, forward and backward.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// On the CPU statistics are float only where half inputs meet float parameters; on CUDA always.
c10::ScalarType cpu_statistics(const at::Tensor& input, const at::Tensor& parameter) {
  return parameter.defined() && parameter.scalar_type() != input.scalar_type() ? parameter.scalar_type() : input.scalar_type();
}

/// Output, saved mean and saved inverse deviation.
template <bool kCuda>
std::vector<c10::IValue> batch_norm_results(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& running_mean,
                                            bool training) {
  const int64_t channels = input.size(1);
  if (kCuda) {  // evaluation saves the running statistics
    const c10::ScalarType dtype = accumulate_type(input);
    return {meta_like(input), meta({channels}, dtype), meta({channels}, dtype)};
  }
  const c10::ScalarType dtype = cpu_statistics(input, weight.defined() ? weight : running_mean);
  const int64_t saved = training ? channels : 0;
  return {meta(input.sizes(), input, input.suggest_memory_format()), meta({saved}, dtype), meta({saved}, dtype)};
}

template <bool kCuda>
void batch_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give(batch_norm_results<kCuda>(a.tensor(0), a.tensor(1), a.tensor(3), a[5].toBool()));
}

template <bool kCuda>
void batch_norm_without_statistics(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give(batch_norm_results<kCuda>(a.tensor(0), a.tensor(1), {}, a[3].toBool()));
}

template <bool kCuda>
void batch_norm_functional(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  auto results = batch_norm_results<kCuda>(a.tensor(0), a.tensor(1), a.tensor(3), a[5].toBool());
  results.emplace_back(meta_like(a.tensor(3)));
  results.emplace_back(meta_like(a.tensor(4)));
  a.give(std::move(results));
}

/// With the reserve of cuDNN's kernel, which has none outside its persistent mode.
template <bool kCuda, bool kFunctional, bool kTraining>
void batch_norm_with_reserve(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  auto results = batch_norm_results<kCuda>(a.tensor(0), a.tensor(1), a.tensor(3), kTraining);
  results.emplace_back(meta({0}, c10::kByte));
  if (kFunctional) {
    results.emplace_back(meta_like(a.tensor(3)));
    results.emplace_back(meta_like(a.tensor(4)));
  }
  a.give(std::move(results));
}

bool channels_innermost(const at::Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) || tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d) ||
         (tensor.is_contiguous() && tensor.stride(1) == 1);
}

template <bool kCuda>
void batch_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(2).defined() ? a.tensor(2) : input;
  const bool training = a[7].toBool();
  // The CUDA kernel for running statistics (eval) writes contiguous gradients whatever the input's format.
  const auto format = kCuda && !training ? at::MemoryFormat::Contiguous : input.suggest_memory_format();
  std::vector<c10::IValue> results = {if_wanted(a.flag(9, 0), meta(input.sizes(), input, format))};
  for (const size_t i : {1, 2}) {
    results.push_back(if_wanted(a.flag(9, i), meta({input.size(1)}, weight)));
    // Its reduction for channels-last inputs gives an empty tensor where no gradient is wanted.
    if (kCuda && !a.flag(9, i) && channels_innermost(input) && channels_innermost(a.tensor(0)) && (training || a.flag(9, 3 - i)))
      results.back() = meta({0}, c10::kFloat);
  }
  a.give(std::move(results));
}

void cudnn_batch_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight = a.tensor(1);
  const int64_t channels = a[5].toBool() ? input.size(1) : 0;
  // cuDNN reserves memory only in its persistent NHWC half-precision mode, whose size the device alone knows; elsewhere it is
  // empty.
  a.give({meta(input.sizes(), input, input.suggest_memory_format()), meta({channels}, weight), meta({channels}, weight),
          meta({0}, c10::kByte)});
}

void cudnn_batch_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight = a.tensor(2);
  a.give(
      {meta(input.sizes(), input, input.suggest_memory_format()), meta({input.size(1)}, weight), meta({input.size(1)}, weight)});
}

Sizes row_shape(const at::Tensor& input, size_t normalized) {
  Sizes sizes = input.sizes().vec();
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}

template <bool kCuda>
void layer_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes rows = row_shape(input, a.ints(1).size());
  const c10::ScalarType dtype = kCuda ? accumulate_type(input) : cpu_statistics(input, a.tensor(2));
  a.give({meta(input.sizes(), input), meta(rows, dtype), meta(rows, dtype)});
}

void layer_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(5).defined() ? a.tensor(5) : input;
  const Sizes shape = a.ints(2);
  a.give({if_wanted(a.flag(7, 0), meta(input.sizes(), input)), if_wanted(a.flag(7, 1), meta(shape, weight)),
          if_wanted(a.flag(7, 2), meta(shape, weight))});
}

void rms_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(input.sizes(), input), meta(row_shape(input, a.ints(1).size()), accumulate_type(input))});
}

void rms_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), weight = a.tensor(4);
  a.give({if_wanted(a.flag(5, 0), meta(input.sizes(), input)),
          if_wanted(a.flag(5, 1) && weight.defined(), meta(a.ints(2), weight.defined() ? weight : input))});
}

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
  a.give({if_wanted(a.flag(9, 0), meta(input.sizes(), input, input.suggest_memory_format())),
          if_wanted(a.flag(9, 1), meta({channels}, weight)), if_wanted(a.flag(9, 2), meta({channels}, weight))});
}

/// v, g, dim: the weight and the norms, which half types keep in float.
void weight_norm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor v = a.tensor(0), g = a.tensor(1);
  a.give({meta(v.sizes(), v), meta(g.sizes(), accumulate_type(v))});
}

/// gradient, v, g, norms, dim
void weight_norm_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(1).sizes(), a.tensor(1)), meta(a.tensor(2).sizes(), a.tensor(2))});
}

template <bool kCuda>
void add_batch_norm(std::map<std::string, ShapeFn>& table) {
  table["aten::native_batch_norm"] = table["aten::_native_batch_norm_legit"] = batch_norm<kCuda>;
  table["aten::_native_batch_norm_legit.no_stats"] = batch_norm_without_statistics<kCuda>;
  table["aten::_native_batch_norm_legit_functional"] = batch_norm_functional<kCuda>;
  table["aten::_batch_norm_with_update"] = batch_norm_with_reserve<kCuda, false, true>;
  table["aten::_batch_norm_with_update_functional"] = batch_norm_with_reserve<kCuda, true, true>;
  table["aten::native_batch_norm_backward"] = table["aten::batch_norm_backward"] = batch_norm_backward<kCuda>;
  table["aten::native_layer_norm"] = layer_norm<kCuda>;
}

}  // namespace

void add_normalization(Tables& tables) {
  tables.cpu["aten::_batch_norm_no_update"] = batch_norm_with_reserve<false, false, false>;
  add_batch_norm<false>(tables.cpu);
  add_batch_norm<true>(tables.cuda);
  tables.cuda["aten::cudnn_batch_norm"] = cudnn_batch_norm;
  tables.cuda["aten::cudnn_batch_norm_backward"] = cudnn_batch_norm_backward;
  tables.both("aten::native_layer_norm_backward", layer_norm_backward);
  tables.cuda["aten::_fused_rms_norm"] = rms_norm;
  tables.cuda["aten::_fused_rms_norm_backward"] = rms_norm_backward;
  tables.both("aten::_weight_norm_interface", weight_norm);
  tables.both("aten::_weight_norm_interface_backward", weight_norm_backward);
  tables.both("aten::native_group_norm", group_norm);
  tables.both("aten::native_group_norm_backward", group_norm_backward);
}

}  // namespace memscale::shapes

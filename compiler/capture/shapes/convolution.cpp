// Convolution, forward and backward, and pooling whose result follows the input's memory format.
#include <ATen/native/ConvUtils.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// oneDNN, ATen's own CPU kernel and cuDNN agree: channels last if the input or the weight is, never for double.
at::MemoryFormat convolution_format(const at::Tensor& input, const at::Tensor& weight) {
  if (input.scalar_type() == c10::kDouble || weight.scalar_type() == c10::kDouble) return at::MemoryFormat::Contiguous;
  for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d})
    if (input.suggest_memory_format() == format || weight.suggest_memory_format() == format) return format;
  return at::MemoryFormat::Contiguous;
}

void convolution(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight = a.tensor(1);
  const std::vector<int64_t> stride = a[3].toIntVector(), padding = a[4].toIntVector(), dilation = a[5].toIntVector();
  const std::vector<int64_t> sizes =
      a[6].toBool() ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, a[7].toIntVector(), stride, dilation, a[8].toInt())
                    : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  a.give({meta(sizes, input, convolution_format(input, weight))});
}

void convolution_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor gradient = a.tensor(0), input = a.tensor(1), weight = a.tensor(2);
  const auto format = convolution_format(input, weight);
  const int64_t channels = gradient.size(1);
  a.give({if_wanted(a.flag(10, 0), meta(input.sizes(), input, format)), if_wanted(a.flag(10, 1), meta(weight.sizes(), weight, format)),
          if_wanted(a.flag(10, 2), meta({channels}, weight))});
}

void adaptive_avg_pool2d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  std::vector<int64_t> sizes = input.sizes().vec();
  const std::vector<int64_t> output = a[1].toIntVector();
  sizes[sizes.size() - 2] = output.at(0);
  sizes[sizes.size() - 1] = output.size() > 1 ? output[1] : output[0];
  a.give({meta(sizes, input, input.suggest_memory_format())});
}

void adaptive_avg_pool2d_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1);
  a.give({meta(input.sizes(), input, input.suggest_memory_format())});
}

}  // namespace

void add_convolution(Table& cpu, Table& cuda) {
  for (Table* table : {&cpu, &cuda}) {
    (*table)["aten::convolution"] = (*table)["aten::_convolution"] = convolution;
    (*table)["aten::convolution_backward"] = convolution_backward;
    (*table)["aten::_adaptive_avg_pool2d"] = adaptive_avg_pool2d;
    (*table)["aten::_adaptive_avg_pool2d_backward"] = adaptive_avg_pool2d_backward;
  }
}

}  // namespace memscale::shapes

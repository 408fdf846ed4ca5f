// Pooling whose meta kernel libtorch has not.
#include <ATen/native/Pool.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// The last `spatial` sizes of the input replaced.
Sizes resized(const at::Tensor& input, const Sizes& output, size_t spatial) {
  Sizes sizes = input.sizes().vec();
  for (size_t i = 0; i < spatial; ++i) sizes[sizes.size() - spatial + i] = output.size() == 1 ? output[0] : output.at(i);
  return sizes;
}

void adaptive_avg_pool2d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(resized(input, a.ints(1), 2), input, input.suggest_memory_format())});
}

void adaptive_avg_pool3d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(resized(a.tensor(0), a.ints(1), 3), a.tensor(0))});
}

/// Only batches keep the order of channels last.
at::MemoryFormat format_of_batch(const at::Tensor& input, int64_t dims) {
  return input.dim() == dims ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

void max_pool3d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const auto triple = [&](size_t i, const Sizes& otherwise) {
    Sizes values = a.ints(i);
    if (values.empty()) return otherwise;
    values.resize(3, values.front());
    return values;
  };
  const Sizes kernel = triple(1, {}), stride = triple(2, kernel), padding = triple(3, {0, 0, 0}), dilation = triple(4, {1, 1, 1});
  Sizes output;
  for (size_t i = 0; i < 3; ++i) {
    output.push_back(at::native::pooling_output_shape<int64_t>(input.size(input.dim() - 3 + static_cast<int64_t>(i)), kernel[i],
                                                               padding[i], stride[i], dilation[i], a[5].toBool()));
  }
  const Sizes sizes = resized(input, output, 3);
  const auto format = format_of_batch(input, 5);
  a.give({meta(sizes, input, format), meta(sizes, c10::kLong, format)});
}

void max_pool3d_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1);
  a.give({meta(input.sizes(), input, format_of_batch(input, 5))});
}

template <bool kCuda>
void max_unpool2d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(resized(input, a.ints(2), 2), input, kCuda ? at::MemoryFormat::Contiguous : input.suggest_memory_format())});
}

void max_unpool3d(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(resized(a.tensor(0), a.ints(2), 3), a.tensor(0))});
}

}  // namespace

void add_pooling(Tables& tables) {
  tables.both("aten::_adaptive_avg_pool2d", adaptive_avg_pool2d);
  tables.both("aten::_adaptive_avg_pool2d_backward", in_format<1>);
  tables.both("aten::_adaptive_avg_pool3d", adaptive_avg_pool3d);
  tables.both("aten::_adaptive_avg_pool3d_backward", dense<1>);
  tables.both("aten::max_pool3d_with_indices", max_pool3d);
  tables.both("aten::max_pool3d_with_indices_backward", max_pool3d_backward);
  tables.cpu["aten::max_unpool2d"] = max_unpool2d<false>;
  tables.cuda["aten::max_unpool2d"] = max_unpool2d<true>;
  tables.both("aten::max_unpool3d", max_unpool3d);
  tables.both("aten::fractional_max_pool3d_backward", dense<1>);
}

}  // namespace memscale::shapes

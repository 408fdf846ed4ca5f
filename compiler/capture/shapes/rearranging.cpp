// Padding, shuffling, rolling, flipping, windows and sampling of grids.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// Padding is given from the last dimension on, two numbers a dimension.
template <bool kFormat>
void pad(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes padding = a.ints(1);
  Sizes sizes = input.sizes().vec();
  for (size_t i = 0; i < padding.size(); ++i) sizes[sizes.size() - 1 - i / 2] += padding[i];
  a.give({meta(sizes, input, kFormat ? input.suggest_memory_format() : at::MemoryFormat::Contiguous)});
}

void pixel_shuffle(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const int64_t factor = a[1].toInt(), dim = input.dim();
  Sizes sizes = input.sizes().vec();
  sizes[dim - 3] /= factor * factor;
  sizes[dim - 2] *= factor;
  sizes[dim - 1] *= factor;
  a.give({meta(sizes, input, input.suggest_memory_format())});
}

void pixel_unshuffle(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const int64_t factor = a[1].toInt(), dim = input.dim();
  Sizes sizes = input.sizes().vec();
  sizes[dim - 3] *= factor * factor;
  sizes[dim - 2] /= factor;
  sizes[dim - 1] /= factor;
  a.give({meta(sizes, input, input.suggest_memory_format())});
}

/// The CPU kernel puts the two parts together by cat, dimension after dimension; without dimensions it rolls the flat tensor.
at::Tensor rolled(const at::Tensor& input, const Sizes& shifts, const Sizes& dims) {
  if (input.numel() == 0) return meta_like(input);
  if (dims.empty()) return meta(input.sizes(), input);
  at::Tensor result = input;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = result.size(dims[i]);
    const int64_t start = ((size - shifts[i]) % size + size) % size;
    result = at::cat({result.narrow(dims[i], start, size - start), result.narrow(dims[i], 0, start)}, dims[i]);
  }
  return result;
}

void roll_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({rolled(a.tensor(0), a.ints(1), a.ints(2))});
}

void roll_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({a.tensor(0).numel() == 0 ? meta_like(a.tensor(0)) : meta(a.tensor(0).sizes(), a.tensor(0))});
}

void rot90(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes dims = a.ints(2);
  const int64_t quarter = (a[1].toInt() % 4 + 4) % 4;
  if (quarter == 0)
    a.give({meta(input.sizes(), input)});
  else
    a.give({quarter == 2 ? meta_like(input) : meta_like(input).transpose(dims[0], dims[1])});
}

/// The gradient's sizes are given, not a tensor of them.
template <size_t kSizes>
void dense_of_sizes(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.ints(kSizes), a.tensor(0))});
}

/// The kernels resize a tensor that began with the input's sizes.
at::Tensor resized_from(const at::Tensor& input, const Sizes& sizes) {
  return meta_within(sizes, std::max(input.numel(), c10::multiply_integers(sizes)), input.scalar_type());
}

void im2col(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes kernel = a.ints(1), dilation = a.ints(2), padding = a.ints(3), stride = a.ints(4);
  const bool batched = input.dim() == 4;
  int64_t channels = input.size(batched ? 1 : 0), blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    channels *= kernel[i];
    blocks *=
        (input.size(input.dim() - 2 + static_cast<int64_t>(i)) + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] +
        1;
  }
  a.give({resized_from(input, batched ? Sizes{input.size(0), channels, blocks} : Sizes{channels, blocks})});
}

void col2im(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes image = a.ints(1), kernel = a.ints(2);
  Sizes sizes = {input.size(input.dim() - 2) / (kernel[0] * kernel[1]), image[0], image[1]};
  if (input.dim() == 3) sizes.insert(sizes.begin(), input.size(0));
  a.give({resized_from(input, sizes)});
}

/// Input is (batch, channels, spatial...), grid (batch, output spatial..., coordinates).
void grid_sampler(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), grid = a.tensor(1);
  Sizes sizes = {input.size(0), input.size(1)};
  for (int64_t d = 1; d < grid.dim() - 1; ++d) sizes.push_back(grid.size(d));
  a.give({meta(sizes, input)});
}

void grid_sampler_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(1), grid = a.tensor(2);
  a.give({if_wanted(a.flag(6, 0), meta(input.sizes(), input)), meta(grid.sizes(), grid)});
}

/// `aten::copy` gives a fresh tensor with the strides of the destination; an empty one starts at the beginning.
void copy(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor self = a.tensor(0);
  if (self.numel() == 0) {
    a.give({at::empty_strided(self.sizes(), self.strides(), self.options().device(c10::kMeta))});
    return;
  }
  op.callBoxed(&stack);
}

}  // namespace

void add_rearranging(Tables& tables) {
  tables.cuda["aten::reflection_pad2d"] = pad<false>;
  tables.cpu["aten::reflection_pad2d"] = tables.cpu["aten::replication_pad2d"] = tables.cpu["aten::replication_pad3d"] =
      tables.cpu["aten::reflection_pad3d"] = pad<true>;
  for (const char* name :
       {"aten::reflection_pad2d_backward", "aten::replication_pad2d_backward", "aten::replication_pad3d_backward"}) {
    tables.cpu[name] = in_format<1>;
    tables.cuda[name] = dense<1>;
  }
  tables.cpu["aten::reflection_pad3d_backward"] = in_format<1>;
  tables.cpu["aten::pixel_shuffle"] = pixel_shuffle;
  tables.cpu["aten::pixel_unshuffle"] = pixel_unshuffle;
  tables.cpu["aten::channel_shuffle"] = in_format<0>;
  tables.cuda["aten::channel_shuffle"] = dense<0>;
  tables.both("aten::flip", like<0>);
  tables.cpu["aten::roll"] = roll_cpu;
  tables.cuda["aten::roll"] = roll_cuda;
  tables.both("aten::rot90", rot90);
  tables.both("aten::unfold_backward", dense_of_sizes<1>);
  tables.both("aten::masked_scatter_backward", dense_of_sizes<2>);
  tables.both("aten::im2col", im2col);
  tables.both("aten::col2im", col2im);
  tables.both({"aten::grid_sampler_2d", "aten::grid_sampler_3d"}, grid_sampler);
  tables.both({"aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward"}, grid_sampler_backward);
  tables.both("aten::copy", copy);
}

}  // namespace memscale::shapes

// Fourier transforms. The kernels put the batch first in memory, in the order of the input's strides, and the transformed
// dimensions last.
#include <algorithm>
#include <numeric>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// Dense memory of `sizes` for a transform of `input` over `dims`, innermost last.
at::Tensor transformed(const at::Tensor& input, const Sizes& sizes, const Sizes& dims, c10::ScalarType dtype) {
  std::vector<bool> inner(sizes.size());
  for (const int64_t dim : dims) inner[dim] = true;
  Sizes order;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (!inner[d]) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return input.stride(x) > input.stride(y); });
  const size_t batches = order.size();
  order.insert(order.end(), dims.begin(), dims.end());
  Sizes strides(sizes.size());
  // The memory of an empty dimension counts as one among the transformed ones only: those have the strides of a contiguous
  // tensor.
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= i >= batches ? std::max<int64_t>(sizes[order[i]], 1) : sizes[order[i]];
  }
  return at::empty_strided(sizes, strides, at::TensorOptions().device(c10::kMeta).dtype(dtype));
}

Sizes by_stride(const at::Tensor& input, Sizes dims, size_t fixed_at_end) {
  std::sort(dims.begin(), dims.end() - static_cast<ptrdiff_t>(fixed_at_end),
            [&](int64_t x, int64_t y) { return input.stride(x) > input.stride(y); });
  return dims;
}

constexpr size_t kCufftDims = 3;  // a plan of cuFFT holds no more

at::Tensor complex_transform(const at::Tensor& input, const Sizes& dims, bool cuda) {
  if (dims.empty()) return meta_like(input);
  at::Tensor working = input;
  Sizes rest = by_stride(input, dims, 0);
  while (true) {
    const size_t count = cuda ? std::min(kCufftDims, rest.size()) : rest.size();
    working =
        transformed(working, input.sizes().vec(), {rest.end() - static_cast<ptrdiff_t>(count), rest.end()}, input.scalar_type());
    rest.resize(rest.size() - count);
    if (rest.empty()) return working;
    rest = by_stride(working, rest, 0);
  }
}

/// Real transforms that cuFFT does in one plan.
bool fits_one_plan(const Sizes& dims) { return dims.size() <= kCufftDims && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1); }

template <bool kCuda>
void c2c(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({complex_transform(a.tensor(0), a.ints(1), kCuda)});
}

template <bool kCuda>
void r2c(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes dims = a.ints(1);
  const bool onesided = a[3].toBool();
  const auto dtype = c10::toComplexType(input.scalar_type());
  Sizes half = input.sizes().vec();
  half[dims.back()] = half[dims.back()] / 2 + 1;
  const Sizes sizes = onesided ? half : input.sizes().vec();
  if (!kCuda) {
    a.give({transformed(input, sizes, by_stride(input, dims, 1), dtype)});
    return;
  }
  at::Tensor result;
  if (fits_one_plan(dims)) {
    result = transformed(input, dims.size() == 1 ? sizes : half, dims, dtype);
  } else {
    result = transformed(input, dims.size() == 1 ? sizes : half, {dims.back()}, dtype);
    Sizes rest(dims.begin(), dims.end() - 1);
    while (!rest.empty()) {
      rest = by_stride(result, rest, 0);
      const size_t count = std::min(kCufftDims, rest.size());
      result = transformed(result, half, {rest.end() - static_cast<ptrdiff_t>(count), rest.end()}, dtype);
      rest.resize(rest.size() - count);
    }
  }
  a.give({result.sizes() == at::IntArrayRef(sizes) ? result : meta(sizes, dtype)});
}

template <bool kCuda>
void c2r(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  at::Tensor input = a.tensor(0);
  Sizes dims = a.ints(1), sizes = input.sizes().vec();
  const int64_t last = dims.back();
  sizes[last] = a[3].toInt();
  const auto dtype = c10::toRealValueType(input.scalar_type());
  if (kCuda && fits_one_plan(dims)) {  // the kernel may overwrite its input: it gets a contiguous copy
    a.give({transformed(meta(input.sizes(), input), sizes, dims, dtype)});
    return;
  }
  dims.pop_back();
  if (!dims.empty())
    input = complex_transform(input, dims, kCuda);
  else if (kCuda)
    input = meta(input.sizes(), input);
  a.give({transformed(input, sizes, {last}, dtype)});
}

}  // namespace

void add_spectral(Tables& tables) {
  tables.cpu["aten::_fft_c2c"] = c2c<false>;
  tables.cuda["aten::_fft_c2c"] = c2c<true>;
  tables.cpu["aten::_fft_r2c"] = r2c<false>;
  tables.cuda["aten::_fft_r2c"] = r2c<true>;
  tables.cpu["aten::_fft_c2r"] = c2r<false>;
  tables.cuda["aten::_fft_c2r"] = c2r<true>;
}

}  // namespace memscale::shapes

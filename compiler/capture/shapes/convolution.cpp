// Convolution, forward and backward.
#include <ATen/Parallel.h>
#include <ATen/native/ConvUtils.h>

#include <algorithm>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

struct Convolution {
  at::Tensor input, weight;
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  bool one_dimensional = false;

  /// `first` is the position of the input, `settings` that of the stride.
  Convolution(const Arguments& a, size_t first, size_t settings)
      : input(a.tensor(first)),
        weight(a.tensor(first + 1)),
        stride(a.ints(settings)),
        padding(a.ints(settings + 1)),
        dilation(a.ints(settings + 2)),
        output_padding(a.ints(settings + 4)),
        transposed(a[settings + 3].toBool()),
        groups(a[settings + 5].toInt()),
        one_dimensional(input.dim() == 3) {
    const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
    for (Sizes* values : {&stride, &padding, &dilation, &output_padding})
      if (values->size() == 1) values->resize(spatial, values->front());
    if (one_dimensional) {  // ATen runs it with a height of 1, the input made contiguous first
      input = meta(input.sizes(), input).unsqueeze(2);
      weight = weight.unsqueeze(2);
    }
  }
  bool is_dilated() const {
    return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
  }
  bool is_strided() const {
    return std::any_of(stride.begin(), stride.end(), [](int64_t s) { return s != 1; });
  }
  bool is_pointwise() const { return weight.size(-1) == 1 && weight.size(-2) == 1; }
  bool is_half() const { return input.scalar_type() == c10::kBFloat16 || input.scalar_type() == c10::kHalf; }

  /// The memory format in which the kernel works: channels last if the input or the weight is.
  at::MemoryFormat format(bool cuda) const {
    if (input.is_complex() || !allows_channels_last(cuda)) return at::MemoryFormat::Contiguous;
    const auto last = input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
    return input.suggest_memory_format() == last || weight.suggest_memory_format() == last ? last : at::MemoryFormat::Contiguous;
  }
  bool large_output_padding() const {
    for (size_t i = 0; transposed && i < output_padding.size(); ++i)
      if (output_padding[i] >= stride[i]) return true;
    return false;
  }
  /// cuDNN takes all but double; on the CPU ATen's own kernel knows images alone, oneDNN volumes too.
  bool allows_channels_last(bool cuda) const {
    if (!cuda) return input.dim() == 4 || uses_onednn();
    return input.scalar_type() != c10::kDouble && weight.scalar_type() != c10::kDouble && !large_output_padding();
  }
  /// ATen's choice between oneDNN and its own kernels on the CPU.
  bool uses_onednn() const {
    if (large_output_padding() || (transposed && groups > 1 && input.size(1) == groups)) return false;
    if (is_half()) return true;
    return input.scalar_type() == c10::kFloat &&
           (is_strided() || is_dilated() || input.size(0) >= 16 || !is_pointwise() || at::get_num_threads() > 1) &&
           (groups > 1 || (weight.size(-1) > 3 && weight.size(-2) > 3) || input.size(0) > 1 ||
            input.size(0) * input.size(1) * input.size(2) * input.size(3) > 20480);
  }
  at::Tensor weight_gradient(bool cuda) const {
    const auto format = this->format(cuda);
    if (cuda) {
      // cuDNN follows the input as the forward kernel saw it; where a dimension of 1 makes it dense in both orders, it is not
      // channels last.
      const bool keeps = input.is_contiguous(format) && input.suggest_memory_format() != format;
      return shaped(weight, weight, keeps ? at::MemoryFormat::Contiguous : format);
    }
    // The own kernel of 1×1 filters makes no channels-last gradient for a weight that is dense in both orders.
    const bool keeps = !uses_onednn() && !transposed && is_pointwise() && weight.is_contiguous(format) &&
                       weight.suggest_memory_format() != format;
    return shaped(weight, weight, keeps ? at::MemoryFormat::Contiguous : format);
  }
  at::Tensor output() const {
    Sizes stride = this->stride, padding = this->padding, dilation = this->dilation, output_padding = this->output_padding;
    if (one_dimensional) {
      stride.insert(stride.begin(), 1);
      padding.insert(padding.begin(), 0);
      dilation.insert(dilation.begin(), 1);
      output_padding.insert(output_padding.begin(), 0);
    }
    const Sizes sizes =
        transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride, dilation, groups)
                   : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
    return meta(sizes, input);
  }
  at::Tensor shaped(const at::Tensor& sizes, const at::Tensor& like, at::MemoryFormat format) const {
    const at::Tensor result = meta(sizes.sizes(), like, format);
    return one_dimensional ? result.squeeze(2) : result;
  }
};

template <bool kCuda>
void convolution(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Convolution c(a, 0, 3);
  a.give({c.shaped(c.output(), c.input, c.format(kCuda))});
}

template <bool kCuda>
void convolution_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Convolution c(a, 1, 4);
  a.give({if_wanted(a.flag(10, 0), c.shaped(c.input, c.input, c.format(kCuda))),
          if_wanted(a.flag(10, 1), c.weight_gradient(kCuda)), if_wanted(a.flag(10, 2), meta({a.tensor(0).size(1)}, c.weight))});
}

}  // namespace

void add_convolution(Tables& tables) {
  tables.cpu["aten::convolution"] = tables.cpu["aten::_convolution"] = convolution<false>;
  tables.cuda["aten::convolution"] = tables.cuda["aten::_convolution"] = convolution<true>;
  tables.cpu["aten::convolution_backward"] = convolution_backward<false>;
  tables.cuda["aten::convolution_backward"] = convolution_backward<true>;
}

}  // namespace memscale::shapes

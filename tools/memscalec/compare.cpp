// Comparison of tensors.
#include "tools/memscalec/compare.h"

#include <ATen/ATen.h>

#include <cstring>
#include <sstream>

namespace memscale::cli {
namespace {

std::string layout(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << " sizes " << tensor.sizes() << " strides " << tensor.strides();
  return text.str();
}

std::string value_at(const at::Tensor& flat, int64_t index) {
  const at::Tensor element = flat[index];
  std::ostringstream text;
  text.precision(9);
  if (at::isComplexType(flat.scalar_type())) {
    const auto value = element.item<c10::complex<double>>();
    text << value.real() << "+" << value.imag() << "i";
  } else if (at::isFloatingType(flat.scalar_type())) {
    text << element.to(at::kDouble).item<double>();
  } else {
    text << element.to(at::kLong).item<int64_t>();
  }
  return text.str();
}

}  // namespace

std::string difference(const at::Tensor& planned, const at::Tensor& original) {
  if (planned.defined() != original.defined()) return planned.defined() ? "the original has none" : "the planned one has none";
  if (!planned.defined()) return "";
  // A dimension of one element has no stride to speak of, so is_same_size alone decides there.
  const bool same_strides = planned.sizes() == original.sizes() && [&] {
    for (int64_t d = 0; d < planned.dim(); ++d) {
      if (planned.size(d) > 1 && planned.stride(d) != original.stride(d)) return false;
    }
    return true;
  }();
  if (planned.scalar_type() != original.scalar_type() || !(same_strides || planned.numel() == 0)) {
    return "planned " + layout(planned) + ", original " + layout(original);
  }
  const at::Tensor a = planned.detach().contiguous().flatten(), b = original.detach().contiguous().flatten();
  const auto* left = static_cast<const char*>(a.const_data_ptr());
  const auto* right = static_cast<const char*>(b.const_data_ptr());
  const size_t bytes = a.nbytes(), element = a.element_size();
  if (bytes == 0 || std::memcmp(left, right, bytes) == 0) return "";
  int64_t count = 0, first = -1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(left + i * element, right + i * element, element) == 0) continue;
    if (first < 0) first = i;
    ++count;
  }
  std::string position;
  int64_t rest = first;
  for (int64_t d = planned.dim() - 1; d >= 0; --d) {
    position = std::to_string(rest % planned.size(d)) + (position.empty() ? "" : ", ") + position;
    rest /= planned.size(d);
  }
  return std::to_string(count) + " of " + std::to_string(a.numel()) + " elements differ, first [" + position + "]: planned " +
         value_at(a, first) + ", original " + value_at(b, first);
}

}  // namespace memscale::cli

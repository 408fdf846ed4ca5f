// Bit-for-bit comparison of tensors, in words.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace memscale::cli {

/// Empty if dtype, sizes, strides and every bit are equal (so -0.0 is not 0.0, and a NaN is itself); else what differs first.
std::string difference(const at::Tensor& planned, const at::Tensor& original);

}  // namespace memscale::cli

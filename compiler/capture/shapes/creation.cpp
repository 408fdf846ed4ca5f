// Tensors made from numbers, and random ones.
#include <algorithm>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// start, end, steps, ..., dtype
template <size_t kDtype>
void spaced(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  c10::ScalarType otherwise = c10::typeMetaToScalarType(at::get_default_dtype());
  for (const size_t end : {0, 1})
    if (a[end].isTensor() ? a[end].toTensor().is_complex() : a[end].isComplexDouble()) otherwise = c10::toComplexType(otherwise);
  a.give({meta({a[2].toInt()}, a.dtype(kDtype, otherwise))});
}

void randperm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a[0].toInt()}, a.dtype(1, c10::kLong))});
}

/// Number of elements at and below the diagonal `offset` of a rows × columns matrix.
int64_t lower_triangle(int64_t rows, int64_t columns, int64_t offset) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) count += std::clamp<int64_t>(row + offset + 1, 0, columns);
  return count;
}

template <bool kLower>
void triangle_indices(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const int64_t rows = a[0].toInt(), columns = a[1].toInt(), offset = a[2].toInt();
  const int64_t count =
      kLower ? lower_triangle(rows, columns, offset) : rows * columns - lower_triangle(rows, columns, offset - 1);
  a.give({meta({2, count}, a.dtype(3, c10::kLong))});
}

void multinomial(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor probabilities = a.tensor(0);
  const int64_t samples = a[1].toInt();
  a.give({meta(probabilities.dim() == 1 ? Sizes{samples} : Sizes{probabilities.size(0), samples}, c10::kLong)});
}

}  // namespace

void add_creation(Tables& tables) {
  tables.both({"aten::linspace.Tensor_Tensor", "aten::linspace.Tensor_Scalar", "aten::linspace.Scalar_Tensor"}, spaced<3>);
  tables.both({"aten::logspace.Tensor_Tensor", "aten::logspace.Tensor_Scalar", "aten::logspace.Scalar_Tensor"}, spaced<4>);
  tables.both("aten::randperm", randperm);
  tables.both("aten::tril_indices", triangle_indices<true>);
  tables.both("aten::triu_indices", triangle_indices<false>);
  tables.both("aten::multinomial", multinomial);
  tables.both({"aten::poisson", "aten::binomial", "aten::_standard_gamma", "aten::_sample_dirichlet"}, dense<0>);
  tables.both({"aten::_standard_gamma_grad", "aten::_dirichlet_grad"}, dense<0>);
}

}  // namespace memscale::shapes

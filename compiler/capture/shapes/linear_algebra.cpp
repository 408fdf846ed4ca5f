// Factorisations, solvers, distances. Results of LAPACK are in column order.
#include <ATen/ExpandUtils.h>

#include <algorithm>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

Sizes batch(const at::Tensor& matrix) { return {matrix.sizes().begin(), matrix.sizes().end() - 2}; }

Sizes append(Sizes sizes, std::initializer_list<int64_t> more) {
  sizes.insert(sizes.end(), more);
  return sizes;
}

template <size_t kOperand>
void columns(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor matrix = a.tensor(kOperand);
  a.give({meta_columns(matrix.sizes().vec(), matrix.scalar_type())});
}

void cholesky(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor matrix = a.tensor(0);
  a.give({matrix.numel() == 0 ? meta(matrix.sizes(), matrix) : meta_columns(matrix.sizes().vec(), matrix.scalar_type())});
}

/// B, A: the batches are broadcast.
void cholesky_solve(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor right = a.tensor(0), factor = a.tensor(1);
  a.give(
      {meta_columns(append(at::infer_size(batch(right), batch(factor)), {right.size(-2), right.size(-1)}), right.scalar_type())});
}

/// A, B, upper, left
void solve_triangular(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor factor = a.tensor(0), right = a.tensor(1);
  a.give(
      {meta_columns(append(at::infer_size(batch(factor), batch(right)), {right.size(-2), right.size(-1)}), right.scalar_type())});
}

void geqrf(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta_columns(input.sizes().vec(), input.scalar_type()),
          meta(append(batch(input), {std::min(input.size(-2), input.size(-1))}), input)});
}

template <bool kCuda>
void eig(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const auto dtype = c10::toComplexType(input.scalar_type());
  a.give({meta(append(batch(input), {input.size(-1)}), dtype),
          kCuda ? meta(input.sizes(), dtype) : meta_columns(input.sizes().vec(), dtype)});
}

void pinv(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(append(batch(input), {input.size(-1), input.size(-2)}), input)});
}

/// cuSOLVER gives V in column order and ATen its conjugate transpose, so that the last result is in row order.
void svd_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const bool full = a[1].toBool(), vectors = a[2].toBool();
  const int64_t rows = input.size(-2), columns = input.size(-1), rank = std::min(rows, columns);
  const auto dtype = input.scalar_type();
  const at::Tensor values = meta(append(batch(input), {rank}), c10::toRealValueType(dtype));
  if (!vectors) {
    a.give({meta({0}, dtype), values, meta({0}, dtype)});
    return;
  }
  a.give({meta_columns(append(batch(input), {rows, full ? rows : rank}), dtype), values,
          meta(append(batch(input), {full ? columns : rank, columns}), dtype)});
}

void eigvals(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(append(batch(input), {input.size(-1)}), c10::toComplexType(input.scalar_type()))});
}

void int_mm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a.tensor(0).size(0), a.tensor(1).size(1)}, c10::kInt)});
}

/// Products whose result has another dtype; the factors begin at `kFirst`, the dtype stands after them.
template <size_t kFirst>
void product_of_dtype(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor left = a.tensor(kFirst), right = a.tensor(kFirst + 1);
  a.give({meta(append(batch(left), {left.size(-2), right.size(-1)}), a[kFirst + 2].toScalarType())});
}

void addbmm(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a.tensor(1).size(1), a.tensor(2).size(2)}, a.tensor(1))});
}

void cdist(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor left = a.tensor(0), right = a.tensor(1);
  a.give({meta(append(at::infer_size(batch(left), batch(right)), {left.size(-2), right.size(-2)}), left)});
}

/// gradient, x1, x2, p, distances
void cdist_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor left = a.tensor(1), right = a.tensor(2);
  if (a.tensor(0).numel() == 0 || left.size(-1) == 0)
    a.give({meta_like(left)});
  else
    a.give({meta(append(at::infer_size(batch(left), batch(right)), {left.size(-2), left.size(-1)}), left)});
}

void pdist(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const int64_t points = a.tensor(0).size(0);
  a.give({meta({points * (points - 1) / 2}, a.tensor(0))});
}

}  // namespace

void add_linear_algebra(Tables& tables) {
  tables.both({"aten::cholesky_inverse", "aten::linalg_householder_product"}, columns<0>);
  tables.both("aten::cholesky", cholesky);
  tables.both("aten::ormqr", columns<2>);
  tables.both("aten::cholesky_solve", cholesky_solve);
  tables.both("aten::linalg_solve_triangular", solve_triangular);
  tables.both("aten::geqrf", geqrf);
  tables.cpu["aten::linalg_eig"] = eig<false>;
  tables.cuda["aten::linalg_eig"] = eig<true>;
  tables.both("aten::linalg_matrix_exp", dense<0>);
  tables.both("aten::linalg_pinv.atol_rtol_tensor", pinv);
  tables.cuda["aten::_linalg_svd"] = svd_cuda;
  tables.both("aten::_linalg_eigvals", eigvals);
  tables.both("aten::_int_mm", int_mm);
  tables.cuda["aten::mm.dtype"] = tables.cuda["aten::bmm.dtype"] = product_of_dtype<0>;
  tables.cuda["aten::addmm.dtype"] = tables.cuda["aten::baddbmm.dtype"] = product_of_dtype<1>;
  tables.both("aten::addbmm", addbmm);
  tables.both("aten::_cdist_forward", cdist);
  tables.both("aten::_cdist_backward", cdist_backward);
  tables.both("aten::_pdist_backward", dense<1>);
  tables.both("aten::_pdist_forward", pdist);
}

}  // namespace memscale::shapes

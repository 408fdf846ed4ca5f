// Reductions, scans and histograms. Their results are always contiguous.
#include <ATen/WrapDimUtils.h>

#include <algorithm>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// Sizes after reducing `dims` (all if empty).
Sizes reduced(const at::Tensor& input, const Sizes& dims, bool keep) {
  std::vector<bool> gone(std::max<int64_t>(input.dim(), 1), dims.empty());
  for (const int64_t dim : dims) gone[at::maybe_wrap_dim(dim, input.dim())] = true;
  Sizes sizes;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (!gone[d])
      sizes.push_back(input.size(d));
    else if (keep)
      sizes.push_back(1);
  }
  return sizes;
}

c10::ScalarType sum_type(const at::Tensor& input) {
  return c10::isIntegralType(input.scalar_type(), true) ? c10::kLong : input.scalar_type();
}

void std_or_var(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(reduced(a.tensor(0), a.ints(1), a[3].toBool()), c10::toRealValueType(a.tensor(0).scalar_type()))});
}

void std_or_var_mean(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Sizes sizes = reduced(a.tensor(0), a.ints(1), a[3].toBool());
  a.give({meta(sizes, c10::toRealValueType(a.tensor(0).scalar_type())), meta(sizes, a.tensor(0))});
}

void logsumexp(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(reduced(a.tensor(0), a.ints(1), a[2].toBool()), float_type(a.tensor(0).scalar_type()))});
}

void nansum(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(reduced(a.tensor(0), a.ints(1), a[2].toBool()), a.dtype(3, sum_type(a.tensor(0))))});
}

void count_nonzero(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  Sizes dims;
  if (a[1].isInt()) dims = {a[1].toInt()};
  if (a[1].isIntList()) dims = a.ints(1);
  a.give({meta(reduced(a.tensor(0), dims, false), c10::kLong)});
}

void prod(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({}, a.dtype(1, sum_type(a.tensor(0))))});
}

void trace(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({}, sum_type(a.tensor(0)))});
}

/// Values and indices along one dimension; arguments from `kDim` on are dim and keepdim.
template <size_t kDim>
void values_and_indices(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Sizes sizes = reduced(a.tensor(0), {a[kDim].toInt()}, a[kDim + 1].toBool());
  a.give({meta(sizes, a.tensor(0)), meta(sizes, c10::kLong)});
}

void aminmax(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({}, a.tensor(0)), meta({}, a.tensor(0))});
}

void aminmax_of_dimension(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Sizes sizes = reduced(a.tensor(0), {a[1].toInt()}, a[2].toBool());
  a.give({meta(sizes, a.tensor(0)), meta(sizes, a.tensor(0))});
}

void scan_with_indices(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(0).sizes(), a.tensor(0)), meta(a.tensor(0).sizes(), c10::kLong)});
}

void histc(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a[1].toInt()}, a.tensor(0))});
}

void histogram(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a[1].toInt()}, a.tensor(0)), meta({a[1].toInt() + 1}, a.tensor(0))});
}

void histogramdd_bin_edges(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  c10::List<at::Tensor> edges;
  for (const int64_t bins : a.ints(1)) edges.push_back(meta({bins + 1}, a.tensor(0)));
  a.give({edges});
}

void histogramdd(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.ints(1), a.tensor(0))});
}

}  // namespace

void add_reductions(Tables& tables) {
  tables.both({"aten::std.correction", "aten::var.correction"}, std_or_var);
  tables.both({"aten::std_mean.correction", "aten::var_mean.correction"}, std_or_var_mean);
  tables.both("aten::logsumexp", logsumexp);
  tables.both("aten::nansum", nansum);
  tables.both({"aten::count_nonzero", "aten::count_nonzero.dim_IntList"}, count_nonzero);
  tables.both("aten::prod", prod);
  tables.both("aten::trace", trace);
  tables.both({"aten::max", "aten::min", "aten::median", "aten::nanmedian", "aten::dot", "aten::vdot"}, scalar<0>);
  tables.both({"aten::median.dim", "aten::nanmedian.dim", "aten::mode"}, values_and_indices<1>);
  tables.both("aten::_aminmax", aminmax);
  tables.both("aten::_aminmax.dim", aminmax_of_dimension);
  tables.both("aten::kthvalue", values_and_indices<2>);
  tables.both({"aten::cummax", "aten::cummin"}, scan_with_indices);
  tables.both("aten::logcumsumexp", dense<0>);
  tables.both("aten::histc", histc);
  tables.cpu["aten::histogram.bin_ct"] = histogram;
  tables.cpu["aten::_histogramdd_bin_edges"] = histogramdd_bin_edges;
  tables.cpu["aten::_histogramdd_from_bin_cts"] = histogramdd;
}

}  // namespace memscale::shapes

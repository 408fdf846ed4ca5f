// Embeddings and selections by index.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/index.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

void embedding(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  Sizes sizes = a.tensor(1).sizes().vec();
  sizes.push_back(a.tensor(0).size(1));
  a.give({meta(sizes, a.tensor(0))});
}

void embedding_dense_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor gradient = a.tensor(0);
  a.give({meta({a[2].toInt(), gradient.size(-1)}, gradient)});
}

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
struct Bags {
  explicit Bags(const Arguments& a)
      : weight(a.tensor(0)),
        indices(a.tensor(1)),
        offsets(a.tensor(2)),
        weights(a.tensor(6)),
        mode(a[4].toInt()),
        padding(a[8].toInt()) {
    count = offsets.numel() - (a[7].toBool() ? 1 : 0);
  }
  at::Tensor output() const { return meta({count, weight.size(1)}, weight); }

  at::Tensor weight, indices, offsets, weights;
  int64_t mode, padding, count;
};

/// A sum over contiguous rows skips the map from index to bag; otherwise it is made with one element more than it keeps.
template <bool kForwardOnly>
void embedding_bag_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Bags bags(a);
  const bool fast = bags.mode == kSum && bags.weight.stride(1) == 1 && bags.padding < 0 &&
                    (!bags.weights.defined() || bags.weights.stride(0) == 1) && bags.weight.scalar_type() != c10::kDouble;
  const auto dtype = bags.offsets.scalar_type();
  const int64_t indices = bags.indices.numel();
  const bool cut = !kForwardOnly || bags.mode != kSum;  // else the sizes of the bags keep the end of the last one
  const at::Tensor per_bag = meta_within({cut ? bags.count : bags.offsets.numel()}, bags.offsets.numel(), dtype);
  a.give({bags.output(), fast ? meta({0}, dtype) : meta_within({indices}, indices + 1, dtype), per_bag,
          bags.mode == kMax ? meta({bags.count, bags.weight.size(1)}, dtype) : at::empty_like(per_bag)});
}

void embedding_bag_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const Bags bags(a);
  const auto dtype = bags.indices.scalar_type();
  a.give({bags.output(), meta(bags.indices.sizes(), dtype), meta(bags.offsets.sizes(), dtype),
          bags.mode == kMax ? meta({bags.count, bags.weight.size(1)}, dtype) : meta({0}, dtype)});
}

/// The number of rows is argument `kRows`.
template <size_t kRows>
void embedding_bag_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a[kRows].toInt(), a.tensor(0).size(1)}, a.tensor(0))});
}

void embedding_bag_weights_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a.tensor(2).numel()}, a.tensor(0))});
}

void index_select(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor self = a.tensor(0);
  Sizes sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(a[1].toInt(), self.dim())] = a.tensor(2).numel();
  a.give({meta(sizes, self)});
}

void take(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(1).sizes(), a.tensor(0))});
}

/// index, then masked_fill
void unsafe_masked_index(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor selected = at::index(a.tensor(0), a[2].toOptionalTensorList());
  a.give({meta_like(selected)});
}

/// `searchsorted(boundaries, values)` and `bucketize(values, boundaries)`; the flag asks for int32.
template <size_t kValues>
void searchsorted(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const c10::IValue values = a[kValues];
  a.give({meta(values.isTensor() ? values.toTensor().sizes() : at::IntArrayRef(), a[2].toBool() ? c10::kInt : c10::kLong)});
}

/// data, reduce, lengths, indices, offsets, axis
void segment_reduce(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor data = a.tensor(0);
  const int64_t axis = a[5].toInt();
  Sizes sizes = data.sizes().vec();
  sizes[axis] = a.tensor(2).defined() ? a.tensor(2).size(axis) : a.tensor(4).size(axis) - 1;
  a.give({meta(sizes, data)});
}

void nonzero_static_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a[1].toInt(), a.tensor(0).dim()}, c10::kLong)});
}

void nonzero_static_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({a.tensor(0).dim(), a[1].toInt()}, c10::kLong).t()});
}

/// repeats, output_size
void repeat_interleave(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(!a[1].isNone(), "repeat_interleave by a tensor: pass output_size, or its shape depends on data");
  a.give({meta({a[1].toInt()}, a.tensor(0))});
}

}  // namespace

void add_indexing(Tables& tables) {
  tables.both("aten::embedding", embedding);
  tables.both("aten::embedding_dense_backward", embedding_dense_backward);
  tables.cpu["aten::_embedding_bag"] = embedding_bag_cpu<false>;
  tables.cpu["aten::_embedding_bag_forward_only"] = embedding_bag_cpu<true>;
  tables.cuda["aten::_embedding_bag"] = tables.cuda["aten::_embedding_bag_forward_only"] = embedding_bag_cuda;
  tables.both("aten::_embedding_bag_backward", embedding_bag_backward<6>);
  tables.both("aten::_embedding_bag_dense_backward", embedding_bag_backward<5>);
  tables.both("aten::_embedding_bag_per_sample_weights_backward", embedding_bag_weights_backward);
  tables.both("aten::index_select", index_select);
  tables.both("aten::take", take);
  tables.both("aten::_unsafe_masked_index", unsafe_masked_index);
  tables.both("aten::_unsafe_masked_index_put_accumulate", like<0>);
  tables.both("aten::bucketize.Tensor", searchsorted<0>);
  tables.both({"aten::searchsorted.Tensor", "aten::searchsorted.Scalar"}, searchsorted<1>);
  tables.both("aten::bucketize.Scalar", searchsorted<0>);
  tables.both("aten::segment_reduce", segment_reduce);
  tables.both("aten::_segment_reduce_backward", dense<2>);
  tables.cpu["aten::nonzero_static"] = nonzero_static_cpu;
  tables.cuda["aten::nonzero_static"] = nonzero_static_cuda;
  tables.both("aten::repeat_interleave.Tensor", repeat_interleave);
}

}  // namespace memscale::shapes

// What the shape functions share: reading arguments, making meta results.
#pragma once

#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/capture/shapes/shapes.h"

namespace memscale::shapes {

using torch::jit::Stack;
using Table = std::map<std::string, ShapeFn>;

/// One row per family and target; each adds its entries.
void add_pointwise(Table& cpu, Table& cuda);
void add_normalization(Table& cpu, Table& cuda);
void add_convolution(Table& cpu, Table& cuda);
void add_attention(Table& cpu, Table& cuda);
void add_recurrent(Table& cpu, Table& cuda);
void add_indexing(Table& cpu, Table& cuda);

/// The arguments of a call on the stack, by position.
class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, Stack& stack) : count_(op.schema().arguments().size()), stack_(stack) {}
  const c10::IValue& operator[](size_t i) const { return stack_[stack_.size() - count_ + i]; }
  at::Tensor tensor(size_t i) const { return (*this)[i].isNone() ? at::Tensor() : (*this)[i].toTensor(); }
  bool flag(size_t list, size_t i) const { return (*this)[list].toBoolList()[i]; }
  /// Replaces the arguments by the results.
  void give(std::vector<c10::IValue> results) const {
    torch::jit::drop(stack_, count_);
    for (c10::IValue& result : results) stack_.push_back(std::move(result));
  }

 private:
  size_t count_;
  Stack& stack_;
};

inline at::Tensor meta(at::IntArrayRef sizes, c10::ScalarType dtype, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return at::empty(sizes, at::TensorOptions().device(c10::kMeta).dtype(dtype).memory_format(format));
}
inline at::Tensor meta(at::IntArrayRef sizes, const at::Tensor& like, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return meta(sizes, like.scalar_type(), format);
}
/// Like empty_like on the target: strides kept where they are dense, dense in the same order otherwise.
inline at::Tensor meta_like(const at::Tensor& tensor) { return at::empty_like(tensor, tensor.options().device(c10::kMeta)); }
/// Dense memory in the order of dimensions of a (b, s, h, d) tensor, seen as (b, h, s, d): what attention kernels give.
inline at::Tensor meta_transposed(at::IntArrayRef bhsd, const at::Tensor& like) {
  return meta({bhsd[0], bhsd[2], bhsd[1], bhsd[3]}, like).transpose(1, 2);
}
inline c10::IValue if_wanted(bool wanted, const at::Tensor& tensor) { return wanted ? c10::IValue(tensor) : c10::IValue(at::Tensor()); }
/// Statistics of half-precision inputs are kept in float.
inline c10::ScalarType accumulate_type(const at::Tensor& tensor) { return at::toAccumulateType(tensor.scalar_type(), c10::kCUDA); }

}  // namespace memscale::shapes

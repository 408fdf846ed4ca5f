// What the shape functions share: reading arguments, making meta results.
#pragma once

#include <ATen/AccumulateType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/result_type.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/capture/shapes/shapes.h"

namespace memscale::shapes {

using torch::jit::Stack;
using Sizes = std::vector<int64_t>;

/// Entries by full operator name, one map a target.
struct Tables {
  std::map<std::string, ShapeFn> cpu, cuda;
  void both(const char* name, ShapeFn function) { cpu[name] = cuda[name] = function; }
  void both(std::initializer_list<const char*> names, ShapeFn function) {
    for (const char* name : names) both(name, function);
  }
};

/// One for each family of operators; each adds its entries.
void add_pointwise(Tables& tables);
void add_losses(Tables& tables);
void add_reductions(Tables& tables);
void add_normalization(Tables& tables);
void add_convolution(Tables& tables);
void add_pooling(Tables& tables);
void add_rearranging(Tables& tables);
void add_attention(Tables& tables);
void add_recurrent(Tables& tables);
void add_indexing(Tables& tables);
void add_linear_algebra(Tables& tables);
void add_spectral(Tables& tables);
void add_creation(Tables& tables);

/// The arguments of a call on the stack, by position.
class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, Stack& stack) : count_(op.schema().arguments().size()), stack_(stack) {}
  const c10::IValue& operator[](size_t i) const { return stack_[stack_.size() - count_ + i]; }
  at::Tensor tensor(size_t i) const { return (*this)[i].isNone() ? at::Tensor() : (*this)[i].toTensor(); }
  Sizes ints(size_t i) const { return (*this)[i].isNone() ? Sizes() : (*this)[i].toIntVector(); }
  bool flag(size_t list, size_t i) const { return (*this)[list].toBoolList()[i]; }
  c10::ScalarType dtype(size_t i, c10::ScalarType otherwise) const {
    return (*this)[i].isNone() ? otherwise : (*this)[i].toScalarType();
  }
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
inline at::Tensor meta_like(const at::Tensor& tensor, c10::ScalarType dtype) {
  return at::empty_like(tensor, tensor.options().device(c10::kMeta).dtype(dtype));
}
/// A dense tensor at the start of a storage for `elements` elements: kernels resize down without giving memory back.
inline at::Tensor meta_within(at::IntArrayRef sizes, int64_t elements, c10::ScalarType dtype) {
  const at::Tensor shape = meta(sizes, dtype);
  return meta({elements}, dtype).as_strided(shape.sizes(), shape.strides());
}
/// Dense memory in the order of dimensions of a (b, s, h, d) tensor, seen as (b, h, s, d): what attention kernels give.
inline at::Tensor meta_transposed(at::IntArrayRef bhsd, const at::Tensor& like) {
  return meta({bhsd[0], bhsd[2], bhsd[1], bhsd[3]}, like).transpose(1, 2);
}
/// Matrices in column order, as LAPACK has them.
inline at::Tensor meta_columns(Sizes sizes, c10::ScalarType dtype) {
  std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
  return meta(sizes, dtype).mT();
}
inline c10::IValue if_wanted(bool wanted, const at::Tensor& tensor) {
  return wanted ? c10::IValue(tensor) : c10::IValue(at::Tensor());
}
/// Statistics of half-precision inputs are kept in float.
inline c10::ScalarType accumulate_type(const at::Tensor& tensor) {
  return at::toAccumulateType(tensor.scalar_type(), c10::kCUDA);
}
inline c10::ScalarType float_type(c10::ScalarType type) { return c10::isIntegralType(type, true) ? c10::kFloat : type; }

/// The result that TensorIterator would allocate for these operands.
at::Tensor broadcast(const std::vector<at::Tensor>& operands, c10::ScalarType dtype);

// Results that need no more than one operand.
template <size_t kOperand>
void dense(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(kOperand).sizes(), a.tensor(kOperand))});
}
template <size_t kOperand>
void like(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(kOperand))});
}
/// Dense in the operand's memory format: contiguous or channels last.
template <size_t kOperand>
void in_format(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor operand = a.tensor(kOperand);
  a.give({meta(operand.sizes(), operand, operand.suggest_memory_format())});
}
template <size_t kOperand>
void scalar(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta({}, a.tensor(kOperand))});
}

}  // namespace memscale::shapes

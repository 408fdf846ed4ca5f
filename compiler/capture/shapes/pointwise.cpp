// Elementwise ops whose meta kernel libtorch has not, by TensorIterator's own rule for results.
#include <ATen/TensorIterator.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

/// The result that TensorIterator would allocate for these operands.
at::Tensor broadcast(const std::vector<at::Tensor>& operands, c10::ScalarType dtype) {
  at::TensorIteratorConfig config;
  at::Tensor result;
  config.set_check_mem_overlap(false).add_owned_output(result);
  for (const at::Tensor& operand : operands) config.add_owned_const_input(operand);
  config.check_all_same_dtype(false).check_all_same_device(false).declare_static_dtype_and_device(dtype, c10::kMeta);
  at::TensorIterator iterator = config.build();
  return iterator.output(0);
}

void unary(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, a.tensor(0).scalar_type())});
}

void where(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1), a.tensor(2)}, at::result_type(a.tensor(1), a.tensor(2)))});
}

// rows whose entries are all -inf give zeros, by a where over softmax's own result
void safe_softmax(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta(input.sizes(), a[2].isNone() ? input.scalar_type() : a[2].toScalarType())});
}

void native_dropout(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta_like(input), meta_like(input.to(c10::kBool))});
}

void native_dropout_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(0))});
}

void log_sigmoid_forward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(0).sizes(), a.tensor(0)), meta(a.tensor(0).sizes(), a.tensor(0))});
}

void prelu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, a.tensor(0).scalar_type())});
}

void prelu_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor like = broadcast({a.tensor(0), a.tensor(1), a.tensor(2)}, a.tensor(1).scalar_type());
  a.give({like, meta_like(like)});
}

void binary_cross_entropy(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  // A reduced loss keeps the memory of all losses: the kernel sums into the tensor that held them.
  a.give({a[3].toInt() == at::Reduction::None ? meta_like(input) : meta({input.numel()}, input).as_strided({}, {})});
}

void binary_cross_entropy_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(1))});
}

}  // namespace

void add_pointwise(Table& cpu, Table& cuda) {
  for (Table* table : {&cpu, &cuda}) {
    for (const char* name : {"aten::relu", "aten::abs", "aten::angle", "aten::hardswish", "aten::hardtanh", "aten::hardsigmoid", "aten::celu"})
      (*table)[name] = unary;
    (*table)["aten::where.self"] = where;
    (*table)["aten::_safe_softmax"] = safe_softmax;
    (*table)["aten::_prelu_kernel"] = prelu;
    (*table)["aten::_prelu_kernel_backward"] = prelu_backward;
    (*table)["aten::binary_cross_entropy"] = binary_cross_entropy;
    (*table)["aten::binary_cross_entropy_backward"] = binary_cross_entropy_backward;
  }
  cpu["aten::log_sigmoid_forward"] = log_sigmoid_forward;
  cuda["aten::native_dropout"] = native_dropout;
  cuda["aten::native_dropout_backward"] = native_dropout_backward;
}

}  // namespace memscale::shapes

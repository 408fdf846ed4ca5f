// Elementwise ops, by TensorIterator's own rule for results where the kernel uses it.
#include <ATen/TensorIterator.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {

at::Tensor broadcast(const std::vector<at::Tensor>& operands, c10::ScalarType dtype) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).add_owned_output(at::Tensor());
  for (const at::Tensor& operand : operands) config.add_owned_const_input(operand);
  config.check_all_same_dtype(false).check_all_same_device(false).declare_static_dtype_and_device(dtype, c10::kMeta);
  return config.build().output(0);
}

namespace {

void unary(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, a.tensor(0).scalar_type())});
}

void unary_to_real(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, c10::toRealValueType(a.tensor(0).scalar_type()))});
}

void unary_to_float(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, float_type(a.tensor(0).scalar_type()))});
}

void unary_to_bool(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, c10::kBool)});
}

void angle(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor x = a.tensor(0);
  // The kernel for complex numbers writes into a contiguous tensor.
  a.give({x.is_complex() ? meta(x.sizes(), c10::toRealValueType(x.scalar_type())) : broadcast({x}, float_type(x.scalar_type()))});
}

void frexp(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, a.tensor(0).scalar_type()), broadcast({a.tensor(0)}, c10::kInt)});
}

void binary(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, at::result_type(a.tensor(0), a.tensor(1)))});
}

void binary_to_bool(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, c10::kBool)});
}

void binary_to_complex(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, c10::toComplexType(a.tensor(0).scalar_type()))});
}

void scalar_and_tensor(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(1)}, at::result_type(a[0].toScalar(), a.tensor(1)))});
}

/// A tensor and the mask of what the clamping left alone.
void with_mask(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(0)), meta_like(a.tensor(0), c10::kBool)});
}

/// gradient, input, scale, zero point
void learnable_quantize_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(1)), meta(a.tensor(2).sizes(), a.tensor(2)), meta(a.tensor(3).sizes(), a.tensor(3))});
}

void fused_dropout(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta_like(a.tensor(0)), meta_like(a.tensor(0), c10::kByte)});
}

void where(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1), a.tensor(2)}, at::result_type(a.tensor(1), a.tensor(2)))});
}

// rows whose entries are all -inf give zeros, by a where over softmax's own result
void safe_softmax(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(0).sizes(), a.dtype(2, a.tensor(0).scalar_type()))});
}

void native_dropout_backward_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, float_type(a.tensor(0).scalar_type()))});
}

void log_sigmoid_forward_cpu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(0).sizes(), a.tensor(0)), meta(a.tensor(0).sizes(), a.tensor(0))});
}

void log_sigmoid_forward_cuda(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0)}, a.tensor(0).scalar_type()), meta({0}, a.tensor(0))});
}

void prelu(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({broadcast({a.tensor(0), a.tensor(1)}, a.tensor(0).scalar_type())});
}

void prelu_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor self = a.tensor(1);
  const at::Tensor gradient = meta_like(self);
  a.give({gradient, at::empty_like(gradient)});
}

}  // namespace

void add_pointwise(Tables& tables) {
  tables.both({"aten::relu", "aten::hardswish", "aten::hardtanh", "aten::hardsigmoid", "aten::celu", "aten::nan_to_num",
               "aten::_conj_physical"},
              unary);
  tables.both("aten::abs", unary_to_real);
  tables.both("aten::angle", angle);
  tables.both("aten::logit", unary_to_float);
  tables.both({"aten::isnan", "aten::isinf", "aten::logical_not"}, unary_to_bool);
  tables.both("aten::frexp.Tensor", frexp);
  tables.both(
      {"aten::floor_divide", "aten::rsub.Tensor", "aten::hardswish_backward", "aten::hardtanh_backward", "aten::mish_backward"},
      binary);
  tables.both({"aten::logical_and", "aten::logical_or", "aten::logical_xor"}, binary_to_bool);
  tables.both({"aten::complex", "aten::polar"}, binary_to_complex);
  tables.both("aten::glu_backward", dense<1>);
  tables.both("aten::where.self", where);
  tables.both("aten::_safe_softmax", safe_softmax);
  tables.both("aten::_prelu_kernel", prelu);
  tables.both("aten::_prelu_kernel_backward", prelu_backward);
  tables.cpu["aten::log_sigmoid_forward"] = log_sigmoid_forward_cpu;
  tables.cuda["aten::log_sigmoid_forward"] = log_sigmoid_forward_cuda;
  tables.both("aten::log_sigmoid_backward", like<0>);
  tables.both("aten::remainder.Scalar_Tensor", scalar_and_tensor);
  tables.both({"aten::__lshift__.Tensor", "aten::__rshift__.Tensor"}, binary);
  tables.both({"aten::__lshift__.Scalar", "aten::__rshift__.Scalar"}, unary);
  tables.both(
      {"aten::fake_quantize_per_tensor_affine_cachemask", "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
       "aten::fake_quantize_per_channel_affine_cachemask", "aten::native_dropout"},
      with_mask);
  tables.both({"aten::_fake_quantize_learnable_per_tensor_affine", "aten::_fake_quantize_learnable_per_channel_affine"}, like<0>);
  tables.both(
      {"aten::_fake_quantize_learnable_per_tensor_affine_backward", "aten::_fake_quantize_learnable_per_channel_affine_backward"},
      learnable_quantize_backward);
  tables.cpu["aten::_masked_softmax"] = tables.cuda["aten::_masked_softmax_backward"] = like<0>;
  tables.cuda["aten::_masked_softmax"] = tables.cpu["aten::_masked_softmax_backward"] = dense<0>;
  tables.cuda["aten::_fused_dropout"] = fused_dropout;
  tables.cuda["aten::_masked_scale"] = like<0>;
  tables.cpu["aten::native_dropout_backward"] = native_dropout_backward_cpu;
  tables.cuda["aten::native_dropout_backward"] = in_format<0>;
}

}  // namespace memscale::shapes

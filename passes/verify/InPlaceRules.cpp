//===- InPlaceRules.cpp - What may stand for a captured call ---------------===//
//
// Pairs "captured=in-place". Underscore forms write `self`, out forms take one
// more tensor, which must be an operand that the call has already.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/InPlaceRules.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace memscale::ir;

// Written by hand from the schemas of torch 2.11: updates of parts of self, then elementwise kernels.
static const llvm::StringSet<> &pairs() {
  static const llvm::StringSet<> set = {"scatter.src=scatter_.src",
                                        "scatter.value=scatter_.value",
                                        "scatter.reduce=scatter_.reduce",
                                        "scatter.value_reduce=scatter_.value_reduce",
                                        "scatter_add=scatter_add_",
                                        "scatter_reduce.two=scatter_reduce_.two",
                                        "index_put=index_put_",
                                        "index_add=index_add_",
                                        "index_copy=index_copy_",
                                        "index_fill.int_Scalar=index_fill_.int_Scalar",
                                        "index_fill.int_Tensor=index_fill_.int_Tensor",
                                        "masked_scatter=masked_scatter_",
                                        "relu=relu_",
                                        "neg=neg_",
                                        "exp=exp_",
                                        "exp2=exp2_",
                                        "expm1=expm1_",
                                        "log=log_",
                                        "log2=log2_",
                                        "log10=log10_",
                                        "log1p=log1p_",
                                        "sqrt=sqrt_",
                                        "rsqrt=rsqrt_",
                                        "reciprocal=reciprocal_",
                                        "abs=abs_",
                                        "sin=sin_",
                                        "cos=cos_",
                                        "tanh=tanh_",
                                        "sigmoid=sigmoid_",
                                        "erf=erf_",
                                        "erfc=erfc_",
                                        "floor=floor_",
                                        "ceil=ceil_",
                                        "trunc=trunc_",
                                        "round=round_",
                                        "sign=sign_",
                                        "sgn=sgn_",
                                        "silu=silu_",
                                        "mish=mish_",
                                        "hardswish=hardswish_",
                                        "hardsigmoid=hardsigmoid_",
                                        "hardtanh=hardtanh_",
                                        "leaky_relu=leaky_relu_",
                                        "elu=elu_",
                                        "gelu=gelu_",
                                        "clamp=clamp_",
                                        "clamp.Tensor=clamp_.Tensor",
                                        "clamp_min=clamp_min_",
                                        "clamp_max=clamp_max_",
                                        "threshold=threshold_",
                                        "logical_not=logical_not_",
                                        "bitwise_not=bitwise_not_",
                                        "nan_to_num=nan_to_num_",
                                        "zero=zero_",
                                        "fill.Scalar=fill_.Scalar",
                                        "fill.Tensor=fill_.Tensor",
                                        "masked_fill.Scalar=masked_fill_.Scalar",
                                        "masked_fill.Tensor=masked_fill_.Tensor",
                                        "add.Tensor=add_.Tensor",
                                        "add.Tensor=add.out",
                                        "add.Scalar=add_.Scalar",
                                        "sub.Tensor=sub_.Tensor",
                                        "sub.Tensor=sub.out",
                                        "sub.Scalar=sub_.Scalar",
                                        "mul.Tensor=mul_.Tensor",
                                        "mul.Tensor=mul.out",
                                        "mul.Scalar=mul_.Scalar",
                                        "div.Tensor=div_.Tensor",
                                        "div.Tensor=div.out",
                                        "div.Scalar=div_.Scalar",
                                        "div.Tensor_mode=div_.Tensor_mode",
                                        "pow.Tensor_Scalar=pow_.Scalar",
                                        "pow.Tensor_Tensor=pow_.Tensor",
                                        "pow.Tensor_Tensor=pow.Tensor_Tensor_out",
                                        "maximum=maximum.out",
                                        "minimum=minimum.out",
                                        "where.self=where.self_out",
                                        "addcmul=addcmul_",
                                        "addcmul=addcmul.out",
                                        "addcdiv=addcdiv_",
                                        "addcdiv=addcdiv.out",
                                        "lerp.Scalar=lerp_.Scalar",
                                        "lerp.Tensor=lerp_.Tensor",
                                        "bitwise_and.Tensor=bitwise_and_.Tensor",
                                        "bitwise_or.Tensor=bitwise_or_.Tensor",
                                        "bitwise_xor.Tensor=bitwise_xor_.Tensor",
                                        "softplus=softplus.out",
                                        "threshold_backward=threshold_backward.grad_input",
                                        "gelu_backward=gelu_backward.grad_input",
                                        "tanh_backward=tanh_backward.grad_input",
                                        "sigmoid_backward=sigmoid_backward.grad_input",
                                        "silu_backward=silu_backward.grad_input",
                                        "hardtanh_backward=hardtanh_backward.grad_input",
                                        "leaky_relu_backward=leaky_relu_backward.grad_input",
                                        "elu_backward=elu_backward.grad_input",
                                        "softplus_backward=softplus_backward.grad_input"};
  return set;
}

static std::string nameOf(KernelOpInterface kernel) {
  StringRef name = kernel.getSchema();
  name.consume_front("aten::");
  return kernel.getOverload().empty() ? name.str() : (name + "." + kernel.getOverload()).str();
}

std::optional<unsigned> memscale::passes::overwrittenOperand(KernelOpInterface kernel, KernelOpInterface original) {
  if (!original.getSchema().starts_with("aten::") || !kernel.getSchema().starts_with("aten::") ||
      !pairs().contains(nameOf(original) + "=" + nameOf(kernel)))
    return std::nullopt;
  if (original.hasEffects() || original->getNumResults() != 1 || !original.getAlias(0).isFresh())
    return std::nullopt;

  // The schema arguments: the same, or the same and one reference more.
  ArrayAttr args = kernel.getArgs(), expected = original.getArgs();
  bool out = args.size() == expected.size() + 1;
  if (!out && args != expected)
    return std::nullopt;
  if (out && (args.getValue().drop_back() != expected.getValue() || !isa<RefAttr>(args.getValue().back())))
    return std::nullopt;
  unsigned target = out ? kernel->getNumOperands() - 1 : 0;
  if (!out && (args.empty() || !isa<RefAttr>(args[0])))
    return std::nullopt;
  if (out && !llvm::is_contained(kernel->getOperands().drop_back(), kernel->getOperand(target)))
    return std::nullopt;

  // It writes that operand alone, and its result is that operand.
  if (kernel.getMutates() != ArrayRef<int32_t>{static_cast<int32_t>(target)})
    return std::nullopt;
  AliasAttr alias = kernel.getAlias(0);
  if (alias.getKind() != AliasKind::Operand || alias.getValue() != target)
    return std::nullopt;
  auto type = cast<StridedTensorType>(kernel->getOperand(target).getType());
  bool fills = type.isDense() && type.getOffset() == 0 && type == kernel->getResult(0).getType();
  return fills ? std::optional<unsigned>(target) : std::nullopt;
}

//===- InPlaceForms.cpp - Kernels that can write over an operand -----------===//
//
// Elementwise kernels, in which each element is read before it is written, and
// updates of parts. Out forms are listed where ATen's kernel writes straight
// into `out`; generated out forms that compute elsewhere and copy are left
// out. Checked against the schemas by tests/lit/passes/inplace_schemas.py.
// Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/InPlaceForms.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct Entry {
  const char *overload;
  const char *underscore; // overload of the trailing-underscore form; null: none
  const char *out;        // overload of the out form; null: none
};
} // namespace

/// Schema names and their overloads, "aten::" left off.
static const llvm::StringMap<SmallVector<Entry, 2>> &forms() {
  static const auto *table = [] {
    auto *map = new llvm::StringMap<SmallVector<Entry, 2>>();
    for (const char *name :
         {"relu",      "neg",         "exp",         "exp2",       "expm1", "log",  "log2",  "log10",     "log1p",
          "sqrt",      "rsqrt",       "reciprocal",  "abs",        "sin",   "cos",  "tanh",  "sigmoid",   "erf",
          "erfc",      "floor",       "ceil",        "trunc",      "round", "sign", "sgn",   "silu",      "mish",
          "hardswish", "hardsigmoid", "hardtanh",    "leaky_relu", "elu",   "gelu", "clamp", "clamp_min", "clamp_max",
          "threshold", "logical_not", "bitwise_not", "nan_to_num", "zero"})
      (*map)[name] = {{"", "", nullptr}};
    (*map)["clamp"].push_back({"Tensor", "Tensor", nullptr});
    for (const char *name : {"add", "sub", "mul", "div"})
      (*map)[name] = {{"Tensor", "Tensor", "out"}, {"Scalar", "Scalar", nullptr}};
    (*map)["div"].push_back({"Tensor_mode", "Tensor_mode", nullptr});
    (*map)["pow"] = {{"Tensor_Scalar", "Scalar", nullptr}, {"Tensor_Tensor", "Tensor", "Tensor_Tensor_out"}};
    for (const char *name : {"fill", "masked_fill"})
      (*map)[name] = {{"Scalar", "Scalar", nullptr}, {"Tensor", "Tensor", nullptr}};
    for (const char *name : {"maximum", "minimum", "softplus"})
      (*map)[name] = {{"", nullptr, "out"}};
    (*map)["where"] = {{"self", nullptr, "self_out"}};
    for (const char *name : {"addcmul", "addcdiv"})
      (*map)[name] = {{"", "", "out"}};
    (*map)["lerp"] = {{"Scalar", "Scalar", nullptr}, {"Tensor", "Tensor", nullptr}};
    for (const char *name : {"bitwise_and", "bitwise_or", "bitwise_xor"})
      (*map)[name] = {{"Tensor", "Tensor", nullptr}};
    for (const char *name : {"threshold_backward", "gelu_backward", "tanh_backward", "sigmoid_backward", "silu_backward",
                             "hardtanh_backward", "leaky_relu_backward", "elu_backward", "softplus_backward"})
      (*map)[name] = {{"", nullptr, "grad_input"}};
    return map;
  }();
  return *table;
}

/// A copy of self of which parts are overwritten: self's own memory does as well.
static const llvm::StringMap<SmallVector<Entry, 2>> &updates() {
  static const auto *table = [] {
    auto *map = new llvm::StringMap<SmallVector<Entry, 2>>();
    for (const char *name : {"scatter_add", "index_put", "index_add", "index_copy", "masked_scatter"})
      (*map)[name] = {{"", "", nullptr}};
    for (const char *overload : {"src", "value", "reduce", "value_reduce"})
      (*map)["scatter"].push_back({overload, overload, nullptr});
    (*map)["scatter_reduce"] = {{"two", "two", nullptr}};
    (*map)["index_fill"] = {{"int_Scalar", "int_Scalar", nullptr}, {"int_Tensor", "int_Tensor", nullptr}};
    return map;
  }();
  return *table;
}

static const SmallVector<Entry, 2> *entriesOf(StringRef name) {
  for (const auto *table : {&forms(), &updates()})
    if (auto found = table->find(name); found != table->end())
      return &found->second;
  return nullptr;
}

std::optional<InPlaceForm> memscale::passes::inPlaceForm(KernelOpInterface kernel, unsigned operand) {
  StringRef name = kernel.getSchema();
  if (!name.consume_front("aten::") || kernel->getNumResults() != 1 || kernel.hasEffects())
    return std::nullopt;
  const SmallVector<Entry, 2> *entries = entriesOf(name);
  if (!entries || !kernel.getAlias(0).isFresh() || kernel->getOperand(operand).getType() != kernel->getResult(0).getType())
    return std::nullopt;
  auto self = kernel.getArgs().empty() ? RefAttr() : dyn_cast<RefAttr>(kernel.getArgs()[0]);
  for (const Entry &entry : *entries) {
    if (kernel.getOverload() != entry.overload)
      continue;
    if (entry.underscore && self && self.getOperand() == static_cast<int32_t>(operand))
      return InPlaceForm{(kernel.getSchema() + "_").str(), entry.underscore, false};
    if (entry.out)
      return InPlaceForm{kernel.getSchema().str(), entry.out, true};
  }
  return std::nullopt;
}

bool memscale::passes::isElementwise(KernelOpInterface kernel) {
  StringRef name = kernel.getSchema();
  return name.consume_front("aten::") && forms().contains(name);
}

SmallVector<unsigned> memscale::passes::inPlaceOperands(KernelOpInterface kernel, const Storages &storages) {
  SmallVector<unsigned> operands;
  for (unsigned i = 0; i < kernel->getNumOperands(); ++i) {
    Value operand = kernel->getOperand(i);
    const StorageInfo &info = storages.infoOf(operand);
    auto type = cast<StridedTensorType>(operand.getType());
    if (info.argument >= 0 || info.host || type.getOffset() != 0 || !type.isDense() ||
        info.bytes != type.getNumElements() * type.getElementBytes() || info.bytes == 0 || !inPlaceForm(kernel, i))
      continue;
    bool alone =
        llvm::count_if(kernel->getOperands(), [&](Value other) { return storages.of(other) == storages.of(operand); }) == 1;
    if (alone)
      operands.push_back(i);
  }
  return operands;
}

// Every shape function against the real CPU kernel: sizes, strides, dtype, storage bytes, aliasing between results. CUDA layouts are those
// recorded on the device, told in the test.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/capture/shapes/shapes.h"

namespace memscale::shapes {
namespace {

using torch::jit::Stack;

struct Case {
  std::string op, overload;
  std::vector<c10::IValue> arguments;
};

at::Tensor f(at::IntArrayRef sizes) { return at::rand(sizes); }
at::Tensor channels_last(at::IntArrayRef sizes) { return at::rand(sizes).contiguous(at::MemoryFormat::ChannelsLast); }
at::Tensor index(at::IntArrayRef sizes, int64_t below) { return at::randint(below, sizes, at::kLong); }
c10::IValue ints(std::vector<int64_t> values) { return values; }
c10::IValue mask(std::vector<bool> values) {
  c10::List<bool> list;
  for (const bool value : values) list.push_back(value);
  return list;
}

c10::IValue on_meta(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const at::Tensor& tensor = value.toTensor();
  at::Tensor base = at::empty({static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size())}, tensor.options().device(at::kMeta));
  return base.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

void expect_same(const c10::IValue& real, const c10::IValue& shape, const std::string& what) {
  if (!real.isTensor()) {
    EXPECT_TRUE(real == shape) << what;
    return;
  }
  const at::Tensor &a = real.toTensor(), &b = shape.toTensor();
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  EXPECT_TRUE(b.is_meta()) << what;
  EXPECT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_EQ(a.strides(), b.strides()) << what;
  EXPECT_EQ(a.scalar_type(), b.scalar_type()) << what;
  EXPECT_EQ(a.storage_offset(), b.storage_offset()) << what;
  EXPECT_EQ(a.storage().nbytes(), b.storage().nbytes()) << what;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const std::string& op, std::vector<c10::IValue> arguments, const std::string& overload = "") {
    list.push_back({"aten::" + op, overload, std::move(arguments)});
  };
  const c10::IValue none;
  for (const at::Tensor& x : {f({3, 5}), f({5, 3}).t(), f({0, 4}), channels_last({2, 3, 4, 5}), f({2, 6}).slice(1, 0, 6, 2), f({3, 5}).to(at::kBFloat16)}) {
    for (const char* op : {"relu", "abs", "angle", "hardswish", "hardsigmoid"}) add(op, {x});
    add("hardtanh", {x, -1.0, 1.0});
    add("celu", {x, 1.0});
    add("log_sigmoid_forward", {x});
    add("_prelu_kernel", {x, f({1}).expand(x.sizes()).to(x.scalar_type())});
    add("_prelu_kernel_backward", {x, x, f({1}).expand(x.sizes()).to(x.scalar_type())});
  }
  add("where", {f({3, 1}) > 0.5, f({3, 5}), f({5})}, "self");
  add("where", {f({3, 5}) > 0.5, at::scalar_tensor(0.0), f({5, 3}).t()}, "self");
  add("_safe_softmax", {f({2, 3, 5}), int64_t{-1}, none});
  add("_safe_softmax", {f({2, 5, 3}).transpose(1, 2), int64_t{-1}, none});
  for (const int64_t reduction : {0, 1, 2}) {
    add("binary_cross_entropy", {f({3, 5}), f({3, 5}), none, reduction});
    add("binary_cross_entropy_backward", {reduction ? f({}) : f({3, 5}), f({3, 5}), f({3, 5}), none, reduction});
  }

  for (const bool training : {true, false}) {
    for (const at::Tensor& x : {f({4, 3, 6, 5}), channels_last({4, 3, 6, 5}), f({4, 3}), f({4, 3, 7})}) {
      add("native_batch_norm", {x, f({3}), f({3}), f({3}), f({3}), training, 0.1, 1e-5});
      const at::Tensor statistics = training ? f({3}) : f({0});
      add("native_batch_norm_backward", {f(x.sizes()).contiguous(x.suggest_memory_format()), x, f({3}), f({3}), f({3}), statistics, statistics, training, 1e-5, mask({true, true, true})});
    }
  }
  add("native_batch_norm", {f({4, 3, 6, 5}).to(at::kBFloat16), f({3}), f({3}), f({3}), f({3}), true, 0.1, 1e-5});
  add("native_batch_norm_backward", {f({4, 3, 6, 5}), f({4, 3, 6, 5}), f({3}), f({3}), f({3}), f({3}), f({3}), true, 1e-5, mask({true, false, true})});
  for (const at::Tensor& x : {f({4, 5, 8}), f({5, 4, 8}).transpose(0, 1), f({4, 5, 8}).to(at::kBFloat16)}) {
    const at::Tensor w = f({8}).to(x.scalar_type());
    const auto forward = at::native_layer_norm(x, {8}, w, w, 1e-5);
    add("native_layer_norm", {x, ints({8}), w, w, 1e-5});
    add("native_layer_norm_backward", {f(x.sizes()).to(x.scalar_type()), x, ints({8}), std::get<1>(forward), std::get<2>(forward), w, w, mask({true, true, true})});
    add("native_layer_norm_backward", {f(x.sizes()).to(x.scalar_type()), x, ints({8}), std::get<1>(forward), std::get<2>(forward), w, w, mask({true, false, false})});
  }
  add("native_layer_norm", {f({4, 5, 8}).to(at::kBFloat16), ints({5, 8}), f({5, 8}), f({5, 8}), 1e-5});
  for (const at::Tensor& x : {f({2, 6, 5, 4}), channels_last({2, 6, 5, 4})}) {
    add("native_group_norm", {x, f({6}), f({6}), int64_t{2}, int64_t{6}, int64_t{20}, int64_t{3}, 1e-5});
    add("native_group_norm_backward", {f({2, 6, 5, 4}).contiguous(x.suggest_memory_format()), x, f({2, 3}), f({2, 3}), f({6}), int64_t{2}, int64_t{6}, int64_t{20}, int64_t{3}, mask({true, true, true})});
  }

  struct Convolution { at::Tensor x, w; std::vector<int64_t> stride, padding, dilation; bool transposed; std::vector<int64_t> output_padding; int64_t groups; };
  const std::vector<Convolution> convolutions = {
      {f({2, 4, 9, 8}), f({6, 4, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1},
      {channels_last({2, 4, 9, 8}), f({6, 4, 3, 3}), {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 1},
      {f({2, 4, 9, 8}), f({8, 2, 3, 3}), {1, 1}, {0, 0}, {2, 2}, false, {0, 0}, 2},
      {f({2, 4, 9, 8}), f({6, 4, 1, 1}), {2, 2}, {0, 0}, {1, 1}, false, {0, 0}, 1},
      {f({2, 4, 9, 8}), f({4, 6, 3, 3}), {2, 2}, {1, 1}, {1, 1}, true, {1, 1}, 1},
      {f({2, 4, 9}), f({6, 4, 3}), {1}, {1}, {1}, false, {0}, 1},
      {f({2, 4, 5, 9, 8}), f({6, 4, 3, 3, 3}), {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false, {0, 0, 0}, 1},
      {f({2, 4, 9, 8}).to(at::kDouble), f({6, 4, 3, 3}).to(at::kDouble), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1},
  };
  for (const Convolution& c : convolutions) {
    add("convolution", {c.x, c.w, none, c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups});
    add("_convolution", {c.x, c.w, none, c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups, false, false, true, true});
    const at::Tensor y = at::convolution(c.x, c.w, {}, c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups);
    add("convolution_backward", {y, c.x, c.w, ints({y.size(1)}), c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups, mask({true, true, true})});
    add("convolution_backward", {y, c.x, c.w, ints({0}), c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups, mask({false, true, false})});
  }
  for (const at::Tensor& x : {f({2, 3, 8, 6}), channels_last({2, 3, 8, 6}), f({3, 8, 6})}) {
    add("_adaptive_avg_pool2d", {x, ints({4, 2})});
    add("_adaptive_avg_pool2d_backward", {at::_adaptive_avg_pool2d(x, {4, 2}), x});
  }

  for (const int layout : {0, 1, 2}) {  // contiguous, (b, s, h, d), a third of a packed projection
    const auto qkv = [&] {
      if (layout == 0) return f({2, 3, 16, 8});
      return layout == 1 ? f({2, 16, 3, 8}).transpose(1, 2) : f({2, 16, 72}).slice(2, 24, 48).view({2, 16, 3, 8}).transpose(1, 2);
    };
    const at::Tensor q = qkv(), k = qkv(), v = qkv();
    add("_scaled_dot_product_flash_attention_for_cpu", {q, k, v, 0.0, true, none, none});
    const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
    add("_scaled_dot_product_flash_attention_for_cpu_backward", {f({2, 3, 16, 8}), q, k, v, out, sums, 0.0, true, none, none});
  }

  const at::Tensor x = f({7, 4, 6}), w1 = f({20, 6}), w2 = f({20, 5}), b = f({20}), h = f({4, 5});
  const auto rnn = [&](bool reverse) {
    return std::vector<c10::IValue>{x, w1, w2, b, b, h, h, reverse, ints({}), int64_t{2}, int64_t{5}, int64_t{1}, true, false, false, true};
  };
  add("mkldnn_rnn_layer", rnn(false));
  add("mkldnn_rnn_layer", rnn(true));
  const auto [y, hy, cy, workspace] = at::mkldnn_rnn_layer(x, w1, w2, b, b, h, h, false, {}, 2, 5, 1, true, false, false, true);
  add("mkldnn_rnn_layer_backward", {x, w1, w2, b, b, h, h, y, hy, cy, f(y.sizes()), f(h.sizes()), f(h.sizes()), false, int64_t{2}, int64_t{5}, int64_t{1}, true, true, false, ints({}), false, workspace});

  add("embedding", {f({10, 6}), index({3, 4}, 10), int64_t{-1}, false, false});
  add("embedding", {f({10, 6}), index({4, 3}, 10).t(), int64_t{-1}, false, false});
  add("embedding", {f({10, 6}), index({}, 10), int64_t{-1}, false, false});
  add("embedding_dense_backward", {f({3, 4, 6}), index({3, 4}, 10), int64_t{10}, int64_t{-1}, false});
  add("index_select", {f({5, 6, 7}).transpose(0, 2), int64_t{1}, index({4}, 6)});
  add("take", {f({5, 6}), index({2, 3}, 30)});
  return list;
}

TEST(ShapeFunctions, AgreeWithTheCpuKernels) {
  const capture::Target target{"cpu", 0};
  std::set<std::string> covered;
  for (const Case& test : cases()) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(test.op.c_str(), test.overload.c_str());
    ASSERT_EQ(op.schema().arguments().size(), test.arguments.size()) << test.op;
    const ShapeFn shape = find_shape_function(op.operator_name(), target);
    ASSERT_TRUE(shape) << test.op;
    covered.insert(test.op);
    covered.insert(test.op + "." + test.overload);
    Stack real(test.arguments.begin(), test.arguments.end()), meta;
    for (const c10::IValue& argument : test.arguments) meta.push_back(on_meta(argument));
    {
      at::AutoDispatchBelowADInplaceOrView below;
      op.callBoxed(&real);
      shape(op, meta);
    }
    ASSERT_EQ(real.size(), meta.size()) << test.op;
    std::string operands;
    for (const c10::IValue& argument : test.arguments)
      if (argument.isTensor()) operands += " " + std::string(c10::str(argument.toTensor().sizes())) + c10::str(argument.toTensor().strides());
    for (size_t i = 0; i < real.size(); ++i) {
      expect_same(real[i], meta[i], test.op + " result " + std::to_string(i) + " of" + operands);
      for (size_t j = 0; j < i; ++j) {
        if (!real[i].isTensor() || !real[j].isTensor() || !real[i].toTensor().defined() || !real[j].toTensor().defined()) continue;
        EXPECT_EQ(real[i].toTensor().is_alias_of(real[j].toTensor()), meta[i].toTensor().is_alias_of(meta[j].toTensor())) << test.op;
      }
    }
  }
  for (const std::string& name : shape_function_names("cpu")) EXPECT_TRUE(covered.count(name)) << name << " has no case";
}

at::Tensor half(at::IntArrayRef sizes) { return at::empty(sizes, at::TensorOptions().device(at::kMeta).dtype(at::kBFloat16)); }

Stack run(const std::string& name, Stack arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), "");
  const ShapeFn shape = find_shape_function(op.operator_name(), {"cuda", 90});
  if (!shape) throw std::runtime_error("no shape function for " + name);
  shape(op, arguments);
  return arguments;
}

TEST(CudaShapeFunctions, CudnnAttentionFollowsTheQuerysOrderOfDimensions) {
  // GPT-2: q is a third of a packed (2, 128, 3·768) projection: rows of 2304, 12 heads of 64. The result is dense in the order b, s, h, d.
  const at::Tensor qkv = half({2, 128, 3 * 768});
  const auto head = [&](int64_t i) { return qkv.slice(2, i * 768, (i + 1) * 768).view({2, 128, 12, 64}).transpose(1, 2); };
  const Stack out = run("_scaled_dot_product_cudnn_attention", {head(0), head(1), head(2), c10::IValue(), true, 0.1, true, false, 0.125});
  EXPECT_EQ(out[0].toTensor().strides(), (std::vector<int64_t>{98304, 64, 768, 1}));
  EXPECT_EQ(out[1].toTensor().sizes(), (std::vector<int64_t>{2, 12, 128, 1}));
  EXPECT_EQ(out[1].toTensor().scalar_type(), at::kFloat);
  EXPECT_FALSE(out[2].toTensor().defined());
  EXPECT_EQ(out[4].toInt(), 128);
  EXPECT_EQ(out[6].toTensor().scalar_type(), at::kLong);
}

TEST(CudaShapeFunctions, EfficientAttentionRoundsItsSumsTo32Rows) {
  const at::Tensor q = at::empty({2, 4, 100, 64}, at::TensorOptions().device(at::kMeta));
  const Stack out = run("_scaled_dot_product_efficient_attention", {q, q, q, c10::IValue(), true, 0.0, false, c10::IValue()});
  EXPECT_EQ(out[0].toTensor().strides(), (std::vector<int64_t>{25600, 64, 256, 1}));
  EXPECT_EQ(out[1].toTensor().sizes(), (std::vector<int64_t>{2, 4, 128}));  // 100 → 128
}

TEST(CudaShapeFunctions, BatchNormKeepsStatisticsInFloat) {
  const at::Tensor x = half({4, 8, 6, 6}), c = half({8});
  const Stack out = run("native_batch_norm", {x, c, c, c, c, true, 0.1, 1e-5});
  EXPECT_EQ(out[0].toTensor().scalar_type(), at::kBFloat16);
  EXPECT_EQ(out[1].toTensor().scalar_type(), at::kFloat);
  EXPECT_EQ(out[1].toTensor().sizes(), (std::vector<int64_t>{8}));
}

}  // namespace
}  // namespace memscale::shapes

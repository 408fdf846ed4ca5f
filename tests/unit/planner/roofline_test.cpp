// FLOPs and bytes by hand, times on a profile of round numbers.
#include "compiler/cost/roofline.h"

#include <gtest/gtest.h>

namespace memscale::cost {
namespace {

Profile round_numbers() {
  Profile p;
  p.tflops = {{"float32", 1}, {"bfloat16", 10}};  // 1e12, 1e13 FLOP/s
  p.memory_gb_per_s = 1000;                       // 1e12 B/s
  p.launch_us = 2;
  return p;
}

OpCost cost(const std::string& name, std::vector<TensorShape> in, std::vector<TensorShape> out,
            std::map<std::string, std::vector<int64_t>> ints = {}) {
  return estimate(round_numbers(), {name, "", std::move(in), std::move(out), std::move(ints), false});
}

TensorShape f32(std::vector<int64_t> sizes) { return {"float32", std::move(sizes)}; }

TEST(Roofline, Matmul) {
  const auto c = cost("aten::mm", {f32({100, 200}), f32({200, 300})}, {f32({100, 300})});
  EXPECT_EQ(c.flops, 2.0 * 100 * 200 * 300);          // 12e6: 12 us at 1e12
  EXPECT_EQ(c.bytes, 4.0 * (20000 + 60000 + 30000));  // 0.44 us
  EXPECT_DOUBLE_EQ(c.time_us, 2 + 12);
  EXPECT_EQ(c.kind, "matmul");
}

TEST(Roofline, DtypeHasItsRate) {
  const TensorShape a{"bfloat16", {1000, 1000}};
  EXPECT_DOUBLE_EQ(cost("aten::mm", {a, a}, {a}).time_us, 2 + 200);  // 2e9 at 1e13
}

TEST(Roofline, AddmmAndBaddbmmSkipTheBias) {
  EXPECT_EQ(cost("aten::addmm", {f32({300}), f32({100, 200}), f32({200, 300})}, {f32({100, 300})}).flops, 12e6);
  EXPECT_EQ(cost("aten::baddbmm", {f32({4, 10, 30}), f32({4, 10, 20}), f32({4, 20, 30})}, {f32({4, 10, 30})}).flops,
            2.0 * 4 * 10 * 20 * 30);
  EXPECT_EQ(cost("aten::bmm", {f32({4, 10, 20}), f32({4, 20, 30})}, {f32({4, 10, 30})}).flops, 2.0 * 4 * 10 * 20 * 30);
}

TEST(Roofline, Convolution) {
  // [2, 6, 8, 8] with 12 filters of [3, 3, 3] in 2 groups -> [2, 12, 8, 8]: 2 * 1536 outputs * 27.
  const auto c =
      cost("aten::convolution", {f32({2, 6, 8, 8}), f32({12, 3, 3, 3}), f32({12})}, {f32({2, 12, 8, 8})}, {{"groups", {2}}});
  EXPECT_EQ(c.flops, 2.0 * 1536 * 27);
  EXPECT_EQ(c.kind, "convolution");
  // Transposed: [2, 6, 4, 4] with weight [6, 5, 2, 2] -> [2, 5, 8, 8]: every input element meets 5 * 4 weights.
  EXPECT_EQ(cost("aten::convolution", {f32({2, 6, 4, 4}), f32({6, 5, 2, 2})}, {f32({2, 5, 8, 8})}, {{"transposed", {1}}}).flops,
            2.0 * 192 * 20);
}

TEST(Roofline, ConvolutionBackwardCountsWhatIsAskedFor) {
  const std::vector<TensorShape> in{f32({2, 12, 8, 8}), f32({2, 6, 8, 8}), f32({12, 6, 3, 3})};
  const double one = 2.0 * 1536 * 54;
  EXPECT_EQ(cost("aten::convolution_backward", in, {f32({2, 6, 8, 8}), f32({12, 6, 3, 3}), f32({12})}).flops, 2 * one);
  EXPECT_EQ(cost("aten::convolution_backward", in, {f32({12, 6, 3, 3}), f32({12})}).flops, one);
  EXPECT_EQ(cost("aten::convolution_backward", in, {f32({2, 6, 8, 8}), f32({12, 6, 3, 3})}, {{"output_mask", {0, 1, 0}}}).flops,
            one);
}

TEST(Roofline, Attention) {
  // 2 heads of 8 x 4 against 16 keys: 2 * (2*8*16*4) twice.
  const std::vector<TensorShape> qkv{f32({1, 2, 8, 4}), f32({1, 2, 16, 4}), f32({1, 2, 16, 4})};
  const double product = 2.0 * 2 * 8 * 16 * 4;
  const auto forward = cost("aten::_scaled_dot_product_flash_attention", qkv, {f32({1, 2, 8, 4})});
  EXPECT_EQ(forward.flops, 2 * product);
  EXPECT_EQ(forward.kind, "attention");
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention", qkv, {f32({1, 2, 8, 4})}, {{"is_causal", {1}}}).flops, product);
  auto back = qkv;
  back.insert(back.begin(), f32({1, 2, 8, 4}));
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention_backward", back, qkv).flops, 5 * product);
}

TEST(Roofline, Recurrent) {
  // 5 steps of 3 sequences through weights of 4 x 8 and 4 x 1.
  const auto c = cost("aten::mkldnn_rnn_layer", {f32({5, 3, 8}), f32({4, 8}), f32({4, 1}), f32({4})}, {f32({5, 3, 1})});
  EXPECT_EQ(c.flops, 2.0 * 15 * 36);
  EXPECT_EQ(c.kind, "recurrent");
}

TEST(Roofline, PointwiseIsBoundByBytes) {
  const auto c = cost("aten::add", {f32({1000000}), f32({1000000})}, {f32({1000000})});
  EXPECT_EQ(c.flops, 0);
  EXPECT_EQ(c.bytes, 12e6);
  EXPECT_DOUBLE_EQ(c.time_us, 2 + 12);
}

TEST(Roofline, ViewsAreFreeAndTablesAreNotRead) {
  EXPECT_EQ(cost("aten::transpose", {f32({1000})}, {f32({1000})}).time_us, 0);
  OpDescription view{"aten::reshape", "", {f32({1000})}, {f32({1000})}, {}, true};
  EXPECT_EQ(estimate(round_numbers(), view).time_us, 0);
  EXPECT_EQ(cost("aten::embedding", {f32({50000, 100}), {"int64", {10}}}, {f32({10, 100})}).bytes, 2.0 * 4000);
  EXPECT_EQ(cost("aten::zeros", {}, {f32({100})}).bytes, 400);
}

TEST(Roofline, EmptyAndOddShapes) {
  EXPECT_EQ(cost("aten::mm", {f32({0, 5}), f32({5, 3})}, {f32({0, 3})}).flops, 0);
  EXPECT_EQ(cost("aten::mm", {}, {}).flops, 0);
  EXPECT_EQ(cost("aten::convolution", {f32({1})}, {}).flops, 0);
  EXPECT_EQ(cost("aten::convolution_backward", {f32({1})}, {}).flops, 0);
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention", {f32({1}), f32({1}), f32({1})}, {}).flops, 0);
  EXPECT_EQ(TensorShape({"float32", {INT64_MAX, 8}}).numel(), 0);
  EXPECT_EQ(item_bytes("bool"), 1);
  EXPECT_EQ(item_bytes("nonsense"), 0);
}

}  // namespace
}  // namespace memscale::cost

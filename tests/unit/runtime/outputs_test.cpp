// Outputs, tangents, write-backs and gradients that share memory.
#include "tests/unit/runtime/fixtures.h"

namespace memscale {
namespace {

using runtime::run_plan;
using test::error_text;
using test::load;
using test::PlanMaker;
using namespace test;

/// y0 = w * x, y1 = w + x; both differentiable, `planned` of them with a tangent.
fb::PlanT& two_outputs(PlanMaker& m, bool both) {
  const int w = m.parameter("w", {3});
  const int x = m.input("x", {3});
  const int y0 = m.call("aten::mul.Tensor", {R(w), R(x)});
  const int y1 = m.call("aten::add.Tensor", {R(w), R(x), I(1)});
  const int t0 = m.output(y0, {3}, true, true);
  const int t1 = m.output(y1, {3}, true, both);
  m.segment("s");
  int g = m.call("aten::mul.Tensor", {R(t0), R(x)});
  if (both) g = m.call("aten::add.Tensor", {R(g), R(t1), I(1)});
  m.gradient(w, g);
  return m.finish();
}

TEST(Outputs, MissingTangentsBecomeZerosAndAreCounted) {
  PlanMaker m;
  const auto plan = load(two_outputs(m, true));
  const at::Tensor w = at::randn({3}).requires_grad_(true), x = at::randn({3});
  run_plan(plan, {w}, {}, {x})[0].sum().backward();
  EXPECT_TRUE(same_bits(w.grad(), x));
  EXPECT_EQ(plan->statistics().materialized_tangents, 1);
  w.mutable_grad().reset();
  const auto out = run_plan(plan, {w}, {}, {x});
  (out[0].sum() + out[1].sum()).backward();
  EXPECT_TRUE(same_bits(w.grad(), x + 1));
  EXPECT_EQ(plan->statistics().materialized_tangents, 1);
}

TEST(Outputs, UnplannedOutputsSaySoInBackward) {
  PlanMaker m;
  const auto plan = load(two_outputs(m, false));
  const at::Tensor w = at::randn({3}).requires_grad_(true);
  const auto out = run_plan(plan, {w}, {}, {at::randn({3})});
  EXPECT_TRUE(out[1].requires_grad());
  EXPECT_NE(error_text([&] {
              out[1].sum().backward();
            }).find("reached output 1, but this plan differentiates only output 0; compile with --all-tangents"),
            std::string::npos);
}

TEST(Outputs, ExpandedTangentsAreCopiedToThePlansLayout) {
  PlanMaker m;
  const auto plan = load(two_outputs(m, false));
  const at::Tensor w = at::randn({3}).requires_grad_(true), x = at::randn({3});
  run_plan(plan, {w}, {}, {x})[0].sum().backward();  // sum's gradient has stride 0
  EXPECT_EQ(plan->statistics().restrided_tangents, 1);
}

TEST(Outputs, InPlaceOnAnOutputThatBackwardReadsIsAnError) {
  PlanMaker m;  // y = exp(w), dw = t * y
  const int w = m.parameter("w", {3});
  const int y = m.call("aten::exp", {R(w)});
  const int t = m.output(y, {3}, true, true);
  m.segment("s");
  m.gradient(w, m.call("aten::mul.Tensor", {R(t), R(y)}));
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({3}).requires_grad_(true);
  {
    const at::Tensor out = run_plan(plan, {weight}, {}, {})[0];
    out.sum().backward();
    EXPECT_TRUE(same_bits(weight.grad(), weight.detach().exp()));
  }
  at::Tensor out = run_plan(plan, {weight}, {}, {})[0];
  out.mul_(2);
  EXPECT_NE(error_text([&] { out.sum().backward(); }).find("output 0 was changed in place"), std::string::npos);
}

// native_dropout without training returns its input itself on some devices, which its schema does not say; a graph must not keep
// itself alive through such a register, whatever the kernel does.
TEST(Outputs, SavedOutputsMakeNoCycle) {
  PlanMaker m;
  const int w = m.parameter("w", {1000});
  const int y = m.call("aten::exp", {R(w)});
  const int same = m.call("aten::alias", {R(y)});
  const int t = m.output(same, {1000}, true, true);
  m.segment("s");
  m.gradient(w, m.call("aten::mul.Tensor", {R(t), R(y)}));
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({1000}).requires_grad_(true);
  run_plan(plan, {weight}, {}, {});
  runtime::accounting_begin();
  run_plan(plan, {weight}, {}, {});
  EXPECT_EQ(runtime::accounting_current(), 0);
  EXPECT_GE(runtime::accounting_end(), 4000);
  EXPECT_EQ(weight.use_count(), 1u);
}

TEST(Outputs, ArgumentsAndTheirViewsComeBackAsSuch) {
  PlanMaker m;
  const int w = m.parameter("w", {3});
  const int x = m.input("x", {2, 3});
  const int xt = m.call("aten::t", {R(x)});
  const int y = m.call("aten::mul.Tensor", {R(x), R(w)});
  const int yt = m.call("aten::t", {R(y)});
  m.output(x, {2, 3}, false, false);
  m.output(xt, {3, 2}, false, false);
  m.output(w, {3}, true, false);
  m.output(y, {2, 3}, false, false);
  m.output(y, {2, 3}, false, false);
  m.output(yt, {3, 2}, false, false);
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({3}).requires_grad_(true), input = at::randn({2, 3});
  const auto out = run_plan(plan, {weight}, {}, {input});
  EXPECT_TRUE(out[0].is_same(input));
  EXPECT_TRUE(out[1].is_view() && out[1]._base().is_same(input));
  EXPECT_TRUE(out[2].is_same(weight));
  EXPECT_TRUE(out[3].is_same(out[4]));
  EXPECT_TRUE(out[5].is_alias_of(out[3]));
  const auto version = out[3]._version();
  at::NoGradGuard no_grad;
  out[5].add_(1);
  EXPECT_EQ(out[3]._version(), version + 1);
}

TEST(Outputs, InputsGetGradientsThroughTheirHistory) {
  PlanMaker m;
  const int w = m.parameter("w", {3});
  const int x = m.input("x", {3}, /*requires_grad=*/true);
  const int y = m.call("aten::mul.Tensor", {R(w), R(x)});
  const int t = m.output(y, {3}, true, true);
  m.segment("s");
  m.gradient(w, m.call("aten::mul.Tensor", {R(t), R(x)}));
  m.gradient(x, m.call("aten::mul.Tensor", {R(t), R(w)}));
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({3}).requires_grad_(true), leaf = at::randn({3}).requires_grad_(true);
  (run_plan(plan, {weight}, {}, {leaf * 3})[0] * 2).sum().backward();
  EXPECT_TRUE(same_bits(leaf.grad(), weight.detach() * 2 * 3));
  EXPECT_TRUE(same_bits(weight.grad(), (leaf.detach() * 3) * 2));
}

TEST(Outputs, WriteBacksBumpVersionsAndBackwardReadsTheOldValue) {
  PlanMaker m;  // y = w * b; b <- b + 1; dw = t * (old b)
  const int w = m.parameter("w", {3});
  const int b = m.argument(fb::Role::Buffer, "b", {3});
  const int y = m.call("aten::mul.Tensor", {R(w), R(b)});
  const int next = m.call("aten::add.Scalar", {R(b), F(1), I(1)});
  m.writeback(b, next);
  const int t = m.output(y, {3}, true, true);
  m.segment("s");
  m.gradient(w, m.call("aten::mul.Tensor", {R(t), R(b)}));
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({3}).requires_grad_(true), buffer = at::randn({3});
  const at::Tensor before = buffer.clone();
  const auto version = buffer._version();
  const at::Tensor out = run_plan(plan, {weight}, {buffer}, {})[0];
  EXPECT_TRUE(same_bits(buffer, before + 1));
  EXPECT_EQ(buffer._version(), version + 1);
  out.sum().backward();
  EXPECT_TRUE(same_bits(weight.grad(), before));
}

TEST(Outputs, SwappedBuffersAreReadBeforeTheyAreOverwritten) {
  PlanMaker m;
  const int a = m.argument(fb::Role::Buffer, "a", {3});
  const int b = m.argument(fb::Role::Buffer, "b", {3});
  m.writeback(a, b);
  m.writeback(b, a);
  m.output(m.call("aten::add.Tensor", {R(a), R(b), I(1)}), {3}, false, false);
  const auto plan = load(m.finish());
  const at::Tensor first = at::randn({3}), second = at::randn({3});
  const at::Tensor old_first = first.clone(), old_second = second.clone();
  run_plan(plan, {}, {first, second}, {});
  EXPECT_TRUE(same_bits(first, old_second));
  EXPECT_TRUE(same_bits(second, old_first));
}

TEST(Outputs, GradientsNeverShareMemory) {
  PlanMaker m;  // y = a + view(b): both gradients show the tangent
  const int a = m.parameter("a", {6});
  const int b = m.parameter("b", {2, 3});
  const int bv = m.call("aten::view", {R(b), L({6})});
  const int y = m.call("aten::add.Tensor", {R(a), R(bv), I(1)});
  const int t = m.output(y, {6}, true, true);
  m.segment("s");
  const int gb = m.call("aten::view", {R(t), L({2, 3})});
  m.gradient(a, t);
  m.gradient(b, gb);
  const auto plan = load(m.finish());
  const at::Tensor pa = at::randn({6}).requires_grad_(true), pb = at::randn({2, 3}).requires_grad_(true);
  const at::Tensor tangent = at::randn({6});
  run_plan(plan, {pa, pb}, {}, {})[0].backward(tangent);
  EXPECT_TRUE(same_bits(pa.grad(), tangent));
  EXPECT_TRUE(same_bits(pb.grad().view({6}), tangent));
  EXPECT_FALSE(pa.grad().is_alias_of(pb.grad()));
  EXPECT_FALSE(pa.grad().is_alias_of(tangent));
  EXPECT_FALSE(pb.grad().is_alias_of(tangent));
}

TEST(Outputs, ConstantsAndOptionalArguments) {
  PlanMaker m;
  const int x = m.input("x", {4});
  const int c = m.argument(fb::Role::Constant, "c", {2}, false, "i64");
  const int64_t indices[] = {3, 0};
  m.plan.arguments.back()->data.assign(reinterpret_cast<const uint8_t*>(indices), reinterpret_cast<const uint8_t*>(indices) + 16);
  const int y = m.call("aten::index.Tensor", {R(x), RL({c})});
  m.output(y, {2}, false, false);
  const auto plan = load(m.finish());
  const at::Tensor input = at::randn({4});
  const at::Tensor out = run_plan(plan, {}, {}, {input})[0];
  EXPECT_TRUE(same_bits(out, at::stack({input[3], input[0]})));
}

}  // namespace
}  // namespace memscale

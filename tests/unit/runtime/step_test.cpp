// Whole steps of a two-layer network against eager autograd, bit for bit: recomputed dropout, several forwards, retained graphs,
// frozen parameters, accumulation, errors in mid-step.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include "tests/unit/runtime/fixtures.h"

namespace memscale {
namespace {

using runtime::run_plan;
using test::error_text;
using test::load;
using test::Mlp;
using test::MlpValues;
using test::same_bits;

class Steps : public testing::TestWithParam<bool> {};

TEST_P(Steps, EqualEagerBitForBitOverSeveralSteps) {
  MlpValues v;
  const auto plan = load(Mlp(GetParam()).m.plan);
  std::vector<std::vector<at::Tensor>> expected;
  std::vector<at::Tensor> expected_losses;
  at::manual_seed(42);
  for (int step = 0; step < 3; ++step) {
    expected_losses.push_back(v.eager(v.x).detach());
    at::manual_seed(100 + step);
    v.eager(v.x).backward();
    expected.push_back(v.take_gradients());
  }
  const at::Tensor eager_next = at::rand({4});
  at::manual_seed(42);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
    EXPECT_TRUE(same_bits(loss.detach(), expected_losses[step]));
    at::manual_seed(100 + step);
    run_plan(plan, v.params, {}, {v.x})[0].backward();
    const auto gradients = v.take_gradients();
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(same_bits(gradients[i], expected[step][i])) << i;
  }
  EXPECT_TRUE(same_bits(at::rand({4}), eager_next));  // backward left the generator where eager leaves it
  EXPECT_EQ(plan->statistics().backward_runs, 3);
}

TEST_P(Steps, TwoForwardsBeforeTheBackwards) {
  MlpValues v;
  const auto plan = load(Mlp(GetParam()).m.plan);
  const at::Tensor x2 = at::randn({4, 5});
  at::manual_seed(5);
  const at::Tensor e1 = v.eager(v.x), e2 = v.eager(x2);
  e1.backward();
  const auto g1 = v.take_gradients();
  e2.backward();
  const auto g2 = v.take_gradients();
  at::manual_seed(5);
  const at::Tensor p1 = run_plan(plan, v.params, {}, {v.x})[0], p2 = run_plan(plan, v.params, {}, {x2})[0];
  p2.backward();
  const auto h2 = v.take_gradients();
  p1.backward();
  const auto h1 = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(same_bits(g1[i], h1[i]));
    EXPECT_TRUE(same_bits(g2[i], h2[i]));
  }
}

TEST_P(Steps, GradientAccumulation) {
  MlpValues v;
  const auto plan = load(Mlp(GetParam()).m.plan);
  at::manual_seed(9);
  for (int i = 0; i < 2; ++i) v.eager(v.x).backward();
  const auto expected = v.take_gradients();
  at::manual_seed(9);
  for (int i = 0; i < 2; ++i) run_plan(plan, v.params, {}, {v.x})[0].backward();
  const auto got = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(expected[i], got[i]));
}

TEST_P(Steps, RetainedGraphRunsAgainAndTheThirdTimeIsAnError) {
  MlpValues v;
  const auto plan = load(Mlp(GetParam()).m.plan);
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  loss.backward({}, /*retain_graph=*/true);
  const auto first = v.take_gradients();
  loss.backward();
  const auto second = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(first[i], second[i]));
  EXPECT_NE(error_text([&] { loss.backward(); }).find("backward ran a second time"), std::string::npos);
  EXPECT_EQ(plan->statistics().retained_backward_runs, 1);
}

TEST_P(Steps, GradOfSomeParametersOnly) {
  MlpValues v;
  const auto plan = load(Mlp(GetParam()).m.plan);
  at::manual_seed(3);
  const auto expected = torch::autograd::grad({v.eager(v.x)}, {v.params[2]});
  at::manual_seed(3);
  const auto got = torch::autograd::grad(run_plan(plan, v.params, {}, {v.x}), {v.params[2]});
  EXPECT_TRUE(same_bits(expected[0], got[0]));
  EXPECT_FALSE(v.params[2].grad().defined());
}

INSTANTIATE_TEST_SUITE_P(All, Steps, testing::Bool(), [](const auto& info) { return info.param ? "Recompute" : "SaveAll"; });

TEST(Step, NoGradRunsForwardAloneAndKeepsNothing) {
  MlpValues v;
  const auto plan = load(Mlp(false).m.plan);
  at::manual_seed(8);
  const at::Tensor expected = v.eager(v.x).detach();
  at::manual_seed(8);
  at::NoGradGuard no_grad;
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  EXPECT_TRUE(same_bits(loss, expected));
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_EQ(plan->statistics().forward_only_runs, 1);
}

TEST(Step, SavedValuesGoWithTheGraph) {
  MlpValues v;
  const auto plan = load(Mlp(false).m.plan);
  auto meter = std::make_shared<runtime::Meter>();
  {
    // Twice: the first call installs the counting allocator.
    runtime::MeterScope scope(meter);
  }
  runtime::accounting_begin();
  {
    const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
    EXPECT_GT(runtime::accounting_current(), 4);
  }
  EXPECT_EQ(runtime::accounting_current(), 0);  // dropped without a backward: nothing leaks
  runtime::accounting_end();
}

TEST(Step, FrozenParametersGetNoGradientAndNoSegment) {
  MlpValues v(1, /*frozen_first=*/true);
  const auto plan = load(Mlp(true, /*frozen_first=*/true).m.plan);
  at::manual_seed(4);
  v.eager(v.x).backward();
  const auto expected = v.take_gradients();
  at::manual_seed(4);
  run_plan(plan, v.params, {}, {v.x})[0].backward();
  const auto got = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(expected[i], got[i]));
  EXPECT_FALSE(got[0].defined());
  v.params[0].requires_grad_(true);
  EXPECT_NE(error_text([&] { run_plan(plan, v.params, {}, {v.x}); }).find("'fc1.weight' requires a gradient"), std::string::npos);
}

TEST(Step, ScaledTangent) {
  MlpValues v;
  const auto plan = load(Mlp(true).m.plan);
  at::manual_seed(6);
  (v.eager(v.x) * 1024).backward();
  const auto expected = v.take_gradients();
  at::manual_seed(6);
  (run_plan(plan, v.params, {}, {v.x})[0] * 1024).backward();
  const auto got = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(expected[i], got[i]));
}

TEST(Step, CreateGraphIsAnError) {
  MlpValues v;
  const auto plan = load(Mlp(true).m.plan);
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  EXPECT_NE(error_text([&] { loss.backward({}, true, /*create_graph=*/true); }).find("create_graph=True"), std::string::npos);
}

TEST(Step, InPlaceChangeBetweenForwardAndBackwardIsAnError) {
  MlpValues v;
  const auto plan = load(Mlp(true).m.plan);
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  {
    at::NoGradGuard no_grad;
    v.params[2].add_(1);  // read by segment fc2, as the transposed view
  }
  EXPECT_NE(error_text([&] { loss.backward(); }).find("'fc2.weight' was changed in place"), std::string::npos);
}

// A hook that updates a parameter as soon as its gradient is there (optimizer in backward): fc2's are done with by then.
TEST(Step, UpdatesDuringBackwardOfFinishedSegments) {
  MlpValues v;
  const auto plan = load(Mlp(true).m.plan);
  at::manual_seed(2);
  v.eager(v.x).backward();
  const auto expected = v.take_gradients();
  at::manual_seed(2);
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  v.params[2].register_hook([&](at::Tensor) {
    at::NoGradGuard no_grad;
    v.params[2].add_(1);
  });
  loss.backward();
  const auto got = v.take_gradients();
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(expected[i], got[i]));
}

TEST(Step, GradientsAreTakenWithoutACopy) {
  MlpValues v;
  const auto plan = load(Mlp(true).m.plan);
  const at::Tensor loss = run_plan(plan, v.params, {}, {v.x})[0];
  loss.backward();
  EXPECT_EQ(plan->statistics().cloned_gradients, 0);
  for (const auto& p : v.params) EXPECT_EQ(p.grad().storage().use_count(), 1) << p.sizes();
}

TEST(Step, AnErrorInMidBackwardDropsTheState) {
  test::PlanMaker m;
  const int w = m.parameter("w", {3});
  const int x = m.input("x", {3});
  const int y = m.call("aten::mul.Tensor", {test::R(w), test::R(x)});
  const int s = m.call("aten::sum", {test::R(y), test::N()});
  const int t = m.output(s, {}, true, true);
  m.segment("only");
  const int g = m.call("aten::mul.Tensor", {test::R(t), test::R(x)});
  m.call("aten::view", {test::R(g), test::L({7})});  // cannot be
  m.gradient(w, g);
  const auto plan = load(m.finish());
  const at::Tensor weight = at::randn({3}).requires_grad_(true);
  const at::Tensor loss = run_plan(plan, {weight}, {}, {at::randn({3})})[0];
  const std::string text = error_text([&] { loss.backward(); });
  EXPECT_NE(text.find("in aten::view at model.py:1"), std::string::npos) << text;
  EXPECT_NE(error_text([&] { loss.backward(); }).find("second time"), std::string::npos);
  EXPECT_FALSE(weight.grad().defined());
}

TEST(Step, LayoutsAreComparedOnTheFirstRun) {
  Mlp mlp(false);
  auto& instr = *mlp.m.plan.forward[1];
  instr.first_layout.push_back(test::PlanMaker::meta({4, 8}));
  MlpValues v;
  load(mlp.m.plan);
  EXPECT_EQ(error_text([&] { run_plan(load(mlp.m.plan), v.params, {}, {v.x}); }), "");
  instr.first_layout[0]->strides = {1, 4};
  const std::string text = error_text([&] { run_plan(load(mlp.m.plan), v.params, {}, {v.x}); });
  EXPECT_NE(text.find("aten::addmm at model.py:1 gave Float[4x8] strides (8,1), the plan expects f32[4x8] strides (1,4)"),
            std::string::npos)
      << text;
}

TEST(Step, PeakCountsEveryAllocationOfTheStep) {
  MlpValues v;
  const auto saved = load(Mlp(false).m.plan), recomputed = load(Mlp(true).m.plan);
  for (const auto& plan : {saved, recomputed}) {
    run_plan(plan, v.params, {}, {v.x})[0].backward();
    v.take_gradients();
    auto stats = plan->memory_stats();
    // w1 160, b1 32, w2 96, b2 12, x 80 bytes.
    EXPECT_EQ(stats["measured_static_bytes"], 380);
    EXPECT_EQ(stats["measured_peak_bytes"], 380 + stats["measured_region_peak_bytes"]);
  }
  EXPECT_GT(saved->memory_stats()["measured_region_peak_bytes"], 3 * 4 * 8 * 4);  // relu, noise and product of 4x8
}

TEST(Step, OperatorsOfOtherVersionsAreRefusedAtLoad) {
  Mlp mlp(false);
  mlp.m.plan.ops[0]->name = "aten::no_such_operator";
  EXPECT_NE(error_text([&] { load(mlp.m.plan); }).find("'aten::no_such_operator', which this process does not have"),
            std::string::npos);
  Mlp fewer(false);
  fewer.m.plan.forward[1]->args.pop_back();
  EXPECT_NE(error_text([&] { load(fewer.m.plan); }).find("has 5 arguments, the plan gives 4"), std::string::npos);
  Mlp wrong(false);
  *wrong.m.plan.forward[1]->args[3] = test::L({1});
  EXPECT_NE(error_text([&] { load(wrong.m.plan); }).find("argument 'beta' is a"), std::string::npos);
}

TEST(Step, OperatorsThatReachFilesAreRefused) {
  Mlp mlp(false);
  mlp.m.plan.ops[0]->name = "aten::from_file";
  EXPECT_NE(error_text([&] { load(mlp.m.plan); }).find("reaches beyond tensors"), std::string::npos);
}

}  // namespace
}  // namespace memscale

// Guards: what is captured is what is read; each difference is named; fall-backs are counted.
#include "runtime/core/guards.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "tests/unit/runtime/fixtures.h"

namespace memscale {
namespace {

using test::load;
using test::Mlp;
using test::MlpValues;

fb::PlanT& with_guards(Mlp& mlp) {
  for (const auto& [name, value] : runtime::capture_guards("cpu")) {
    auto guard = std::make_unique<fb::GuardT>();
    guard->name = name;
    guard->value = value;
    mlp.m.plan.guards.push_back(std::move(guard));
  }
  return mlp.m.plan;
}

TEST(Guards, CapturedValuesHold) {
  Mlp mlp(false);
  const auto plan = load(with_guards(mlp));
  EXPECT_EQ(plan->plan().guards.size(), 7u);
  EXPECT_EQ(plan->guard_mismatch(), "");
}

TEST(Guards, CudaGuardsAreReadWithoutADevice) {
  const auto guards = runtime::capture_guards("cuda");
  EXPECT_EQ(guards.count("cudnn"), 1u);
  EXPECT_EQ(guards.count("threads"), 0u);
}

TEST(Guards, TorchVersionIsTheLibrarysOwn) { EXPECT_EQ(runtime::capture_guards("cpu").at("torch").substr(0, 2), "2."); }

TEST(Guards, ThreadsAndDeterminismAreNamed) {
  Mlp mlp(false);
  const auto plan = load(with_guards(mlp));
  const int threads = at::get_num_threads();
  at::set_num_threads(threads + 1);
  EXPECT_NE(plan->guard_mismatch().find("threads is '" + std::to_string(threads + 1) + "'"), std::string::npos);
  at::set_num_threads(threads);
  at::globalContext().setDeterministicAlgorithms(true, false);
  EXPECT_NE(plan->guard_mismatch().find("deterministic is '1'"), std::string::npos);
  at::globalContext().setDeterministicAlgorithms(false, false);
  EXPECT_EQ(plan->guard_mismatch(), "");
}

TEST(Guards, UnknownGuardsFail) {
  Mlp mlp(false);
  with_guards(mlp);
  mlp.m.plan.guards[0]->name = "phase_of_the_moon";
  EXPECT_NE(load(mlp.m.plan)->guard_mismatch().find("phase_of_the_moon"), std::string::npos);
}

TEST(Guards, ArgumentsAreCompared) {
  MlpValues v;
  const auto plan = load(Mlp(false).m.plan);
  EXPECT_EQ(plan->argument_mismatch(v.params, {}, {v.x}), "");
  EXPECT_EQ(plan->argument_mismatch(v.params, {}, {at::randn({3, 5})}),
            "input 'x' is Float[3x5] strides (5,1), the plan expects f32[4x5] strides (5,1)");
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {at::randn({5, 4}).t()}).find("strides (1,4)"), std::string::npos);
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {v.x.to(at::kHalf)}).find("Half"), std::string::npos);
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {v.x.to(at::kMeta)}).find("is on meta"), std::string::npos);
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {}).find("has 1 inputs, got 0"), std::string::npos);
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {v.x.clone().requires_grad_(true)}).find("requires a gradient"),
            std::string::npos);
  EXPECT_NE(plan->argument_mismatch(v.params, {}, {at::Tensor()}).find("undefined"), std::string::npos);
  at::NoGradGuard no_grad;  // without gradients it does not matter who requires one
  EXPECT_EQ(plan->argument_mismatch(v.params, {}, {v.x.clone().requires_grad_(true)}), "");
}

TEST(Guards, FallbacksAreCountedAndWarnOnce) {
  struct Counter : c10::WarningHandler {
    void process(const c10::Warning&) override { ++warnings; }
    int warnings = 0;
  } handler;
  c10::WarningUtils::WarningHandlerGuard scope(&handler);
  const auto plan = load(Mlp(false).m.plan);
  for (int i = 0; i < 3; ++i) plan->note_fallback("test");
  EXPECT_EQ(plan->memory_stats().at("fallbacks"), 3);
  EXPECT_EQ(handler.warnings, 1);
}

}  // namespace
}  // namespace memscale

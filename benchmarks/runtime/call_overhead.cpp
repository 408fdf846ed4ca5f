// What a planned call costs over the same boxed ATen call: a chain of additions of one-element tensors, run as a plan, as a loop
// over callBoxed below autograd, and as at::add under no_grad. Prints nanoseconds per call, best of several rounds, as JSON.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "runtime/torch/autograd.h"
#include "tests/unit/runtime/plan_maker.h"

namespace {

constexpr int kCalls = 2000, kRounds = 50;

double best_ns_per_call(const std::function<void()>& body) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  using namespace memscale;
  at::set_num_threads(1);
  test::PlanMaker m;
  const int x = m.input("x", {1});
  int y = x;
  for (int i = 0; i < kCalls; ++i) y = m.call("aten::add.Tensor", {test::R(y), test::R(x), test::I(1)});
  m.output(y, {1}, false, false);
  auto bytes = runtime::write_plan(m.finish());
  const auto plan =
      c10::make_intrusive<runtime::PlanObject>(at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte));
  const at::Tensor input = at::ones({1});
  at::NoGradGuard no_grad;

  const double planned = best_ns_per_call([&] { runtime::run_plan(plan, {}, {}, {input}); });
  const auto add = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  const auto boxed_loop = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    at::Tensor value = input;
    std::vector<c10::IValue> stack;
    for (int i = 0; i < kCalls; ++i) {
      stack.emplace_back(value);
      stack.emplace_back(input);
      stack.emplace_back(1);
      add.callBoxed(stack);
      value = std::move(stack[0]).toTensor();
      stack.clear();
    }
  };
  const double boxed = best_ns_per_call(boxed_loop);
  const double direct = best_ns_per_call([&] {
    at::Tensor value = input;
    for (int i = 0; i < kCalls; ++i) value = at::add(value, input);
  });
  // What a step costs whatever it computes: 400 parameters to check and place, 24 segments, 400 gradients that are the tangent
  // itself.
  constexpr int kParameters = 400, kSegments = 24;
  test::PlanMaker s;
  std::vector<at::Tensor> parameters;
  std::vector<int> registers;
  for (int i = 0; i < kParameters; ++i) {
    registers.push_back(s.parameter("p" + std::to_string(i), {1}));
    parameters.push_back(at::ones({1}).requires_grad_(true));
  }
  const int sum = s.call("aten::add.Tensor", {test::R(registers[0]), test::R(registers[1]), test::I(1)});
  const int tangent = s.output(sum, {1}, true, true);
  for (int i = 0; i < kParameters; ++i) {
    if (i * kSegments / kParameters != (i - 1) * kSegments / kParameters || i == 0) s.segment("s");
    s.gradient(registers[i], s.call("aten::mul.Tensor", {test::R(tangent), test::R(tangent)}));
  }
  auto step_bytes = runtime::write_plan(s.finish());
  const auto step = c10::make_intrusive<runtime::PlanObject>(
      at::from_blob(step_bytes.data(), {static_cast<int64_t>(step_bytes.size())}, at::kByte));
  double forward_us = 0, backward_us = 0;
  {
    at::AutoGradMode grad(true);
    at::Tensor out;
    forward_us = best_ns_per_call([&] { out = runtime::run_plan(step, parameters, {}, {})[0]; }) * kCalls / 1000;
    backward_us = best_ns_per_call([&] {
                    for (auto& p : parameters) p.mutable_grad().reset();
                    out.backward();
                    out = runtime::run_plan(step, parameters, {}, {})[0];
                  }) * kCalls /
                      1000 -
                  forward_us;
  }
  std::printf("{\"parameters\": %d, \"segments\": %d, \"forward_us\": %.0f, \"backward_us\": %.0f}\n", kParameters, kSegments,
              forward_us, backward_us);
  std::printf("{\"calls\": %d, \"planned_ns\": %.0f, \"boxed_ns\": %.0f, \"direct_ns\": %.0f, \"overhead_ns\": %.0f}\n", kCalls,
              planned, boxed, direct, planned - boxed);
  return 0;
}

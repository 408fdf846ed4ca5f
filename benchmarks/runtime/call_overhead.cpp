// What a planned call costs over the same boxed ATen call: a chain of additions of one-element tensors, run as a plan, as a loop over
// callBoxed below autograd, and as at::add under no_grad. Prints nanoseconds per call, best of several rounds, as JSON.
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
  std::printf("{\"calls\": %d, \"planned_ns\": %.0f, \"boxed_ns\": %.0f, \"direct_ns\": %.0f, \"overhead_ns\": %.0f}\n", kCalls,
              planned, boxed, direct, planned - boxed);
  return 0;
}

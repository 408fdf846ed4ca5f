// Plans as objects, and comparison bit for bit.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/torch/autograd.h"
#include "tests/unit/runtime/plan_maker.h"

namespace memscale::test {

using Handle = c10::intrusive_ptr<runtime::PlanObject>;

inline Handle load(const fb::PlanT& plan) {
  auto bytes = runtime::write_plan(plan);
  return c10::make_intrusive<runtime::PlanObject>(
      at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte).clone());
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b));
}

/// The text of the c10::Error that `body` throws; empty if it throws none.
template <class Body>
std::string error_text(Body body) {
  try {
    body();
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
  return "";
}

/// The values of an Mlp plan, with the same step in eager.
struct MlpValues {
  explicit MlpValues(uint64_t seed = 1, bool frozen_first = false) {
    at::manual_seed(seed);
    x = at::randn({4, 5});
    for (auto sizes : std::vector<std::vector<int64_t>>{{8, 5}, {8}, {3, 8}, {3}}) params.push_back(at::randn(sizes));
    for (size_t i = frozen_first ? 2 : 0; i < 4; ++i) params[i].requires_grad_(true);
  }
  at::Tensor eager(const at::Tensor& input) const {
    const at::Tensor h = at::addmm(params[1], input, params[0].t());
    const at::Tensor y = at::addmm(params[3], at::dropout(at::relu(h), 0.5, true), params[2].t());
    return (y * y).mean();
  }
  std::vector<at::Tensor> take_gradients() {
    std::vector<at::Tensor> result;
    for (auto& p : params) {
      result.push_back(p.grad());
      p.mutable_grad().reset();
    }
    return result;
  }

  at::Tensor x;
  std::vector<at::Tensor> params;
};

}  // namespace memscale::test

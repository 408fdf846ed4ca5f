// Problems small enough to follow by hand. All sizes in bytes, all times in microseconds.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/planner/problem.h"

namespace memscale::planner::testing {

class Make {
 public:
  int32_t storage(int64_t bytes, Role role = Role::kActivation) {
    p.storages.push_back({"s" + std::to_string(p.storages.size()), bytes, role, false, false});
    return static_cast<int32_t>(p.storages.size()) - 1;
  }
  int32_t resident(int64_t bytes, Role role = Role::kParameter) {
    const int32_t s = storage(bytes, role);
    p.storages[s].resident = true;
    return s;
  }
  int32_t kept(int64_t bytes, Role role = Role::kGradient) {
    const int32_t s = storage(bytes, role);
    p.storages[s].keep = true;
    return s;
  }
  Op& op(std::vector<int32_t> inputs, std::vector<int32_t> outputs, double time_us = 1, bool backward = false) {
    Op o;
    o.name = "op" + std::to_string(p.ops.size());
    std::sort(inputs.begin(), inputs.end());
    std::sort(outputs.begin(), outputs.end());
    o.inputs = std::move(inputs);
    o.outputs = std::move(outputs);
    o.time_us = time_us;
    o.backward = backward;
    p.ops.push_back(std::move(o));
    if (!backward) p.border = static_cast<int32_t>(p.ops.size());
    return p.ops.back();
  }
  Problem p;
};

/// x -> a1 -> .. -> an -> loss, then backward ops which read a(i) and the gradient of a(i+1). Every storage has `bytes`, every op
/// `time`.
inline Problem chain(int32_t n, int64_t bytes, double time = 1) {
  Make m;
  std::vector<int32_t> a{m.resident(bytes, Role::kInput)};
  for (int32_t i = 0; i < n; ++i) {
    a.push_back(m.storage(bytes));
    m.op({a[i]}, {a[i + 1]}, time);
  }
  int32_t g = m.storage(bytes);
  m.op({a[n]}, {g}, time, true);
  for (int32_t i = n; i-- > 0;) {
    const int32_t next = i == 0 ? m.kept(bytes) : m.storage(bytes);
    m.op({g, a[i]}, {next}, time, true);
    g = next;
  }
  return std::move(m.p);
}

}  // namespace memscale::planner::testing

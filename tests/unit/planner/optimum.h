// The least time within a budget, by Dijkstra over (ops done, what is in memory). For problems of at most 20 droppable storages.
//
// Shares nothing with the planner but the problem's type.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "compiler/planner/problem.h"

namespace memscale::planner::testing {

/// Eager's order of first runs; no value if no sequence keeps the budget. Problems with mutations are not handled.
inline std::optional<double> optimum_us(const Problem& p, int64_t budget) {
  std::vector<int> bit(p.storages.size(), -1);
  std::vector<int64_t> bytes;
  int64_t base = p.static_bytes;
  for (size_t s = 0; s < p.storages.size(); ++s) {
    if (p.storages[s].resident) base += p.storages[s].bytes;
    if (p.storages[s].resident || p.storages[s].keep) continue;
    bit[s] = static_cast<int>(bytes.size());
    bytes.push_back(p.storages[s].bytes);
  }
  const size_t n = p.ops.size();
  std::vector<int64_t> kept(n + 1, 0);  // by the ops before
  std::vector<char> again(n);
  for (size_t i = 0; i < n; ++i) {
    kept[i + 1] = kept[i];
    again[i] = p.ops[i].recomputable;
    for (int32_t s : p.ops[i].outputs)
      if (p.storages[s].keep) {
        kept[i + 1] += p.storages[s].bytes;
        again[i] = 0;
      }
  }
  using State = std::pair<uint32_t, uint32_t>;  // ops done, storages in memory
  std::map<State, double> best;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> queue;
  const auto reach = [&](double time, State state) {
    const auto [it, fresh] = best.insert({state, time});
    if (!fresh && it->second <= time) return;
    it->second = time;
    queue.push({time, state});
  };
  reach(0, {0, 0});
  while (!queue.empty()) {
    const auto [time, state] = queue.top();
    queue.pop();
    if (best[state] < time) continue;
    const auto [done, memory] = state;
    if (done == n) return time;
    for (uint32_t left = memory; left; left &= left - 1) reach(time, {done, memory & ~(left & -left)});
    int64_t live = base + kept[done];
    for (size_t b = 0; b < bytes.size(); ++b)
      if (memory >> b & 1) live += bytes[b];
    for (uint32_t i = 0; i <= done; ++i) {
      if (i < done && !again[i]) continue;
      const Op& op = p.ops[i];
      bool ready = true;
      for (int32_t s : op.inputs) ready = ready && (bit[s] < 0 || (memory >> bit[s] & 1));
      if (!ready) continue;
      uint32_t after = memory;
      int64_t now = live + op.workspace_bytes;
      for (int32_t s : op.outputs) {
        if (bit[s] < 0) {
          now += p.storages[s].bytes;  // kept: made once
        } else if (!(memory >> bit[s] & 1)) {
          now += p.storages[s].bytes;
          after |= 1u << bit[s];
        }
      }
      const uint32_t next = i == done ? done + 1 : done;
      if (now <= budget) reach(time + op.time_us, {next, after});
      for (const InPlace& c : op.inplace) {
        if (bit[c.input] < 0 || (bit[c.output] >= 0 && (memory >> bit[c.output] & 1))) continue;
        if (now - p.storages[c.output].bytes <= budget) reach(time + op.time_us, {next, after & ~(1u << bit[c.input])});
      }
    }
  }
  return std::nullopt;
}

}  // namespace memscale::planner::testing

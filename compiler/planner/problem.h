// What the planner is asked: one training step as runs of ops over storages, and what memory and time they cost.
//
// Views are resolved away: an op reads and writes storages. See docs/formats/problem.md for the JSON form (memscale.problem/1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memscale::planner {

enum class Role : uint8_t { kParameter, kBuffer, kInput, kConstant, kTangent, kActivation, kGradient, kOutput };

struct Storage {
  std::string name;
  int64_t bytes = 0;  // as the target's allocator rounds it
  Role role = Role::kActivation;
  bool resident =
      false;          // exists before the step and is never freed by the plan (parameters, buffers, inputs, constants, tangents)
  bool keep = false;  // belongs to the caller once produced: never freed before the step ends (outputs, gradients)
};

/// An output that may take over the memory of an input when that input is dead after the run.
struct InPlace {
  int32_t input = -1;   // storage
  int32_t output = -1;  // storage
};

struct Op {
  std::string name;  // "aten::addmm"
  double time_us = 0;
  int64_t workspace_bytes = 0;   // transient, while the op runs
  std::vector<int32_t> inputs;   // storages read (roots of the views), sorted, unique
  std::vector<int32_t> outputs;  // storages allocated by the op, sorted, unique
  std::vector<int32_t> mutates;  // storages written in place without being allocated (buffers); such an op runs exactly once
  std::vector<InPlace> inplace;  // candidates, best first
  bool rng = false;              // recompute replays the generator's state
  bool recomputable = true;
  bool backward = false;
  int32_t block = -1;  // repeated-block hint: ops of one instance share a number, in order; -1: none
};

struct Problem {
  std::string name;
  std::vector<Storage> storages;
  std::vector<Op> ops;       // in eager's order
  int32_t border = 0;        // index of the first backward op
  int64_t static_bytes = 0;  // allocated all through the step beside the resident storages: optimizer state, reserve
  std::vector<int64_t> eager_extra_bytes;  // optional, per op: what eager holds beyond this problem's save-all at that op

  /// Empty if well formed, else one line per fault with the index of the op or storage.
  std::vector<std::string> check() const;
};

}  // namespace memscale::planner

// Random problems shaped like training steps, for tests and benchmarks. Same seed, same problem, on every platform.
#pragma once

#include <cstdint>

#include "compiler/planner/problem.h"

namespace memscale::planner {

struct GenerateOptions {
  uint64_t seed = 1;
  int32_t forward_ops = 20;
  int64_t max_bytes = 1 << 20;
  double skip = 0.2;  // chance of a second input, from any earlier op
  double two_outputs = 0.1;
  double inplace = 0.3;  // chance that an op with equal sizes offers to run in place
  double fixed = 0.05;   // chance of an op that must not run again; half of these update a buffer
  double rng = 0.05;
  int32_t block_length = 0;  // ops of a repeated block; 0: no hints
};

/// Forward ops with random skips, a loss, one backward op per forward op that reads the incoming gradient and some of what its
/// twin read and wrote, parameter gradients that are kept.
Problem generate(const GenerateOptions& options);

/// Layers of a transformer: norm, attention and MLP of realistic relative sizes and times, `backward` included; about 45 ops a
/// layer.
Problem generate_transformer(int32_t layers, int64_t hidden_bytes);

}  // namespace memscale::planner

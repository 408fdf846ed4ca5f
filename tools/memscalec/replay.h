// Trains a planned archive and its original graph side by side on random inputs and compares every bit. CPU plans alone.
//
// Needs the weights (or memory to make some up) and torch; no torch type in this header. Files are left as they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/support/error.h"
#include "tools/memscalec/plan_file.h"

namespace memscale::cli {

struct ReplayOptions {
  std::string planned;
  std::string against;  // empty: the original graph inside the planned archive
  int steps = 3;
  uint64_t seed = 0;
};

struct ReplayResult {
  std::vector<std::string> inputs;  // how each input was made: "ids: int64 [8, 128], 0..1023"
  size_t outputs = 0, gradients = 0, buffers = 0, parameters = 0;
  bool finite = true;                         // false: outputs are not finite, so the comparison says less
  std::map<std::string, int64_t> statistics;  // of the planned module
};

/// Errors: kVerification (the first difference, named), kUsage and those of import::open for `against`, kCompile (the original
/// graph itself fails on every input that was tried).
Expected<ReplayResult> replay(const ReplayOptions& options, const PlanFile& file);

}  // namespace memscale::cli

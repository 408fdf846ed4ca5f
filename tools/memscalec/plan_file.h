// The plan inside a planned archive, read and checked without torch.
#pragma once

#include <string>

#include "compiler/support/error.h"
#include "runtime/plan_generated.h"

namespace memscale::cli {

struct PlanFile {
  fb::PlanT plan;
  uint64_t plan_bytes = 0;
  uint64_t file_bytes = 0;
  bool has_weights = true;  // false: some state tensor has no record
};

/// Errors: kUsage (no such file), kUnsupported (an archive without a plan, a plan of another version), kUnsafe (broken).
Expected<PlanFile> read_plan_file(const std::string& path);

}  // namespace memscale::cli

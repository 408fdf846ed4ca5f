// The peak that a step may reach, as --budget gives it. Needs and destroys nothing.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/support/error.h"

namespace memscale::driver {

struct Budget {
  enum class Kind {
    kBytes,     // "12GiB"
    kFraction,  // "0.6x" of eager's predicted peak
    kMin,       // "min": as little as the planner finds
    kAuto,      // "auto": what the target profile's memory holds, less its reserve
  } kind = Kind::kAuto;
  int64_t bytes = 0;
  double fraction = 0;
  std::string text = "auto";  // as given
};

/// Errors: kUsage.
Expected<Budget> parse_budget(const std::string& text);

}  // namespace memscale::driver

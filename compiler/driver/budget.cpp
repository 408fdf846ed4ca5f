// Parsing of --budget.
#include "compiler/driver/budget.h"

#include "compiler/driver/bytes.h"

namespace memscale::driver {

Expected<Budget> parse_budget(const std::string& text) {
  const Error wrong{Exit::kUsage, "--budget: expected a size, a share of eager's peak, 'min' or 'auto', found '" + text + "'",
                    "for example --budget 12GiB, --budget 600MiB, --budget 0.6x, --budget min"};
  Budget budget;
  budget.text = text;
  if (text == "min") {
    budget.kind = Budget::Kind::kMin;
  } else if (text == "auto") {
    budget.kind = Budget::Kind::kAuto;
  } else if (!text.empty() && text.back() == 'x') {
    budget.kind = Budget::Kind::kFraction;
    if (!parse_decimal(text.substr(0, text.size() - 1), budget.fraction) || !(budget.fraction > 0) || budget.fraction > 1000)
      return wrong;
  } else {
    Expected<int64_t> bytes = parse_bytes(text);
    if (!bytes || *bytes <= 0) return wrong;
    budget.kind = Budget::Kind::kBytes;
    budget.bytes = *bytes;
  }
  return budget;
}

}  // namespace memscale::driver

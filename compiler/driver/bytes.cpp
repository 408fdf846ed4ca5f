// Parsing and printing of sizes. Locale-independent.
#include "compiler/driver/bytes.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace memscale::driver {
namespace {

struct Unit {
  const char* name;
  double bytes;
};

constexpr Unit kUnits[] = {{"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
                           {"kB", 1e3}, {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12}};

}  // namespace

bool parse_decimal(const std::string& text, double& value) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc() && end == text.data() + text.size();
}

Expected<int64_t> parse_bytes(const std::string& text) {
  const Error wrong{Exit::kUsage, "expected a size such as 12GiB or 600MiB, found '" + text + "'",
                    "units: B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000)"};
  const size_t digits = text.find_first_not_of("0123456789.");
  if (digits == std::string::npos || digits == 0) return wrong;
  double number = 0;
  if (!parse_decimal(text.substr(0, digits), number)) return wrong;
  const size_t unit_at = text.find_first_not_of(' ', digits);
  if (unit_at == std::string::npos) return wrong;
  for (const Unit& unit : kUnits) {
    if (text.compare(unit_at, std::string::npos, unit.name) != 0) continue;
    const double bytes = std::floor(number * unit.bytes);
    if (!(bytes < 4.6e18)) return Error{Exit::kUsage, "the size '" + text + "' is larger than can be addressed", ""};
    return static_cast<int64_t>(bytes);
  }
  return wrong;
}

std::string print_bytes(int64_t bytes) {
  char text[48];
  const double b = static_cast<double>(bytes), magnitude = std::fabs(b);
  if (magnitude >= 1073741824.0) {
    std::snprintf(text, sizeof text, "%.3f GiB", b / 1073741824.0);
  } else if (magnitude >= 1048576.0) {
    std::snprintf(text, sizeof text, "%.1f MiB", b / 1048576.0);
  } else if (magnitude >= 1024.0) {
    std::snprintf(text, sizeof text, "%.1f KiB", b / 1024.0);
  } else {
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  }
  return text;
}

std::string exact_bytes(int64_t bytes) {
  static const char* const kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kNames[unit];
}

}  // namespace memscale::driver

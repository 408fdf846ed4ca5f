// Sizes as people write and read them: "12GiB", "600MiB". Stored in bytes everywhere else. Needs and destroys nothing.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/support/error.h"

namespace memscale::driver {

/// "12GiB", "1.5 GiB", "600MiB", "4KiB", "512B", and the decimal "12GB", "600MB", "4kB". A unit is required; the result is
/// rounded down to whole bytes. Errors: kUsage, the message says what was expected.
Expected<int64_t> parse_bytes(const std::string& text);

/// "1.500 GiB", "600.0 MiB", "4.0 KiB", "512 B".
std::string print_bytes(int64_t bytes);

/// Exact and readable by parse_bytes: the largest binary unit that divides `bytes`.
std::string exact_bytes(int64_t bytes);

/// A decimal number without sign, exponent or hexadecimal form that takes the whole of `text`.
bool parse_decimal(const std::string& text, double& value);

}  // namespace memscale::driver

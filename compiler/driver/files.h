// Output files: written beside their place and renamed, so that there is never half a file.
#pragma once

#include <string>

#include "compiler/support/error.h"

namespace memscale::driver {

/// Where a file is written before it is renamed to `path`; the archive writer uses the same name.
std::string temporary_name(const std::string& path);

/// Says before the long work whether `path` can be written: its folder is there and takes files, and it is no folder itself.
/// Leaves nothing behind. Errors: kUsage.
Expected<Success> check_writable(const std::string& option, const std::string& path);

/// Errors: kUsage.
Expected<Success> write_file(const std::string& path, const std::string& text);

}  // namespace memscale::driver

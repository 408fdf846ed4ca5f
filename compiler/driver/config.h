// The configuration file: YAML, one key per setting of the command line. Needs yaml-cpp behind its border; destroys nothing.
#pragma once

#include <string>

#include "compiler/driver/options.h"

namespace memscale::driver {

/// Applies the file's settings to `options`. Errors: kUsage, with file:line; an unknown key names the nearest known one.
Expected<Success> read_config(const std::string& path, CompileOptions& options);

/// The same from text; `name` stands in messages.
Expected<Success> read_config_text(const std::string& text, const std::string& name, CompileOptions& options);

/// All settings as a configuration file that read_config reads back; settings that are not given are comments.
std::string print_config(const CompileOptions& options);

}  // namespace memscale::driver

// Command lines: an option per setting, unknown options answered with the nearest known one.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "tools/memscalec/verbs.h"

namespace CLI {
class App;
}

namespace memscale::cli {

/// Parses with CLI11. Returns -1 to go on, else the exit code: help and version were printed, or an error was.
int parse(CLI::App& app, const Arguments& arguments);

/// What the command line asked for, before it is applied.
struct CompileArguments {
  std::vector<std::pair<const driver::Setting*, std::vector<std::string>>> values;
  std::string config;
  bool print_config = false;
};

/// Adds an option for each setting, --config and --print-config.
void add_settings(CLI::App& app, CompileArguments& arguments);

/// The configuration file first, then the command line. Errors: kUsage.
Expected<driver::CompileOptions> apply(const CompileArguments& arguments);

}  // namespace memscale::cli

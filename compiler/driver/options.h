// What one compilation is asked for, and the settings by which the command line and the configuration file ask for it: one table,
// so that both have the same names, values and errors. Needs and destroys nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/capture/capture.h"
#include "compiler/driver/budget.h"
#include "compiler/driver/optimizer.h"
#include "compiler/support/error.h"

namespace memscale::driver {

/// What --emit writes instead of an archive.
enum class Emit { kNothing, kCaptured, kPlanned, kRewritten, kScheduled, kPlan, kProblem };

struct CompileOptions {
  std::string input;
  std::string output;
  Budget budget;
  std::string target = "cpu";  // name or file of a target profile
  std::vector<capture::InputSpec> shapes;
  Optimizer optimizer;
  std::string policy;  // empty: the whole portfolio
  bool all_tangents = false;
  bool deterministic = false;
  int threads = 0;        // 0: this machine's
  int search_rounds = 0;  // plans that the planner tries beyond its portfolio
  int replay_steps = 1;   // of the plan beside its original before the archive is put in place; 0: none
  bool dry_run = false;
  std::optional<std::string> explain;  // a tensor's name or a part of it; empty: every decision
  std::string report;                  // FILE.json or FILE.txt
  Emit emit = Emit::kNothing;
  std::string emit_to;  // empty: standard output
  int verbosity = 0;    // -1 quiet, 1 verbose
};

/// One setting: `--key VALUE` on the command line, `key: value` in the configuration file.
struct Setting {
  enum class Form { kValue, kFlag, kList, kOptionalValue } form;
  const char* key;
  const char* value_name;  // "SIZE"; empty for flags
  const char* help;
  /// Takes one value ("true" or "false" for flags; lists call it once per element, after `clear`). Errors: kUsage.
  Expected<Success> (*set)(CompileOptions& options, const std::string& value);
  /// The values as `set` reads them; empty where the setting is not given.
  std::vector<std::string> (*get)(const CompileOptions& options);
  void (*clear)(CompileOptions& options) = nullptr;  // lists alone
};

/// All settings, in the order in which help and --print-config show them.
const std::vector<Setting>& settings();
const Setting* find_setting(std::string_view key);
std::vector<std::string> setting_keys();

const char* emit_name(Emit emit);

/// Faults that only show in the whole: no input, no output where one is needed, an extension that is not known. Errors: kUsage.
Expected<Success> check_options(const CompileOptions& options);

}  // namespace memscale::driver

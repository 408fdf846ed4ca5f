// The compiler as a function: import, capture, IR, plan, rewrite, verify, export. No exception leaves it.
#pragma once

#include <functional>
#include <string>

#include "compiler/driver/options.h"
#include "compiler/report/report.h"
#include "compiler/support/error.h"

namespace memscale::driver {

struct CompileResult {
  report::Report report;
  std::string emitted;  // what --emit asked for
};

/// Compiles as `options` say; writes the archive unless --dry-run or --emit stand in the way. `on_phase` is called with the name
/// of each phase as it begins. Needs options that passed check_options. Errors: every exit code of docs/cli.md but 130.
Expected<CompileResult> compile(const CompileOptions& options, const std::function<void(const std::string&)>& on_phase);

}  // namespace memscale::driver

// The compiler as a function: import, capture, IR, plan, rewrite, verify, export. No exception leaves it.
#pragma once

#include <functional>
#include <string>

#include "compiler/driver/options.h"
#include "compiler/report/report.h"
#include "compiler/support/error.h"
#include "runtime/plan_generated.h"

namespace memscale::driver {

struct CompileResult {
  report::Report report;
  std::string emitted;  // what --emit asked for
};

struct Hooks {
  std::function<void(const std::string&)> on_phase;  // called with the name of each phase as it begins
  /// Called with the whole archive under a temporary name and its plan; an error keeps it from its place. The text goes into the
  /// report.
  std::function<Expected<std::string>(const std::string& path, const fb::PlanT& plan)> check_archive;
};

/// Compiles as `options` say; writes the archive unless --dry-run or --emit stand in the way. Needs options that passed
/// check_options. Errors: every exit code of docs/cli.md but 130.
Expected<CompileResult> compile(const CompileOptions& options, const Hooks& hooks);

}  // namespace memscale::driver

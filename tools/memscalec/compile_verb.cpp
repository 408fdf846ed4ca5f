// memscalec compile, the default verb: a training graph in, a planned archive out.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "compiler/driver/config.h"
#include "compiler/driver/driver.h"
#include "compiler/driver/files.h"
#include "tools/memscalec/command_line.h"
#include "tools/memscalec/signals.h"
#include "tools/memscalec/terminal.h"

namespace memscale::cli {
namespace {

/// CLI11 would take the next argument for the value of a bare --explain.
Arguments with_explain_value(Arguments arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--explain") argument = "--explain=*";
  }
  return arguments;
}

Expected<Success> write_results(const driver::CompileOptions& options, const driver::CompileResult& result) {
  const auto print = [](const std::string& text) -> Expected<Success> {
    if (print_result(text)) return Success{};
    return Error{Exit::kCompile, "standard output cannot be written", ""};
  };
  if (!options.report.empty()) {
    const bool json = options.report.ends_with(".json");
    Expected<Success> written =
        driver::write_file(options.report, json ? report::to_json(result.report, true) : report::to_text(result.report));
    if (!written) return written;
  }
  if (options.emit != driver::Emit::kNothing) {
    return options.emit_to.empty() ? print(result.emitted) : driver::write_file(options.emit_to, result.emitted);
  }
  if (options.explain) return print(report::explain(result.report, *options.explain));
  if (options.verbosity >= 0) {
    report::Report shown = result.report;
    shown.warnings.clear();  // they went to standard error
    return print(report::to_text(shown));
  }
  return Success{};
}

}  // namespace

int run_compile(const Arguments& arguments) {
  CLI::App app(
      "memscalec IN -o OUT: plans the memory of a training graph and writes it with its plan. The result computes the same bits "
      "in\n"
      "less memory. Other verbs: memscalec verify, memscalec inspect.",
      "memscalec");
  app.footer(
      "exit codes: 0 ok, 1 compile error, 2 usage, 3 budget infeasible, 4 unsupported input, 5 verification failed, 6 unsafe "
      "input,\n"
      "70 internal, 130 interrupted");
  CompileArguments given;
  add_settings(app, given);
  if (const int code = parse(app, with_explain_value(arguments)); code >= 0) return code;
  Expected<driver::CompileOptions> options = apply(given);
  if (!options) return report_error(options.error());
  if (given.print_config) return print_result(driver::print_config(*options)) ? 0 : 1;
  if (Expected<Success> checked = driver::check_options(*options); !checked) return report_error(checked.error());

  for (const std::string& path : {options->output, options->report, options->emit_to}) {
    if (!path.empty()) remove_on_signal(driver::temporary_name(path));
  }
  Progress progress(options->verbosity);
  Expected<driver::CompileResult> result = driver::compile(*options, [&](const std::string& phase) { progress.phase(phase); });
  progress.phase("");
  if (!result) return report_error(result.error());
  if (options->verbosity >= 0) {
    for (const std::string& warning : result->report.warnings) report_warning(warning);
  }
  if (Expected<Success> written = write_results(*options, *result); !written) return report_error(written.error());
  return 0;
}

}  // namespace memscale::cli

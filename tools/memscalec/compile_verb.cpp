// memscalec compile, the default verb: a training graph in, a planned archive out.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "compiler/driver/config.h"
#include "compiler/driver/driver.h"
#include "compiler/driver/files.h"
#include "tools/memscalec/command_line.h"
#include "tools/memscalec/plan_file.h"
#include "tools/memscalec/replay.h"
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
    return Error{Exit::kUsage, "standard output cannot be written", ""};
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

constexpr double kMaxReplayStepUs = 1e6;  // of predicted time: a larger model is left to memscalec verify

/// The archive's plan beside its original on random inputs. Where that cannot be done, the sentence says why.
Expected<std::string> replay_archive(const driver::CompileOptions& options, const std::string& path, const fb::PlanT& plan) {
  const std::string later = "; memscalec verify does it";
  if (options.replay_steps == 0) return "not done (--replay-steps 0)" + later;
  if (plan.target != "cpu") return "not done: the plan is for " + plan.target + ", and memscalec replays on the CPU alone";
  if (plan.predicted_time_us > kMaxReplayStepUs) return "not done: a step takes long on this target" + later;
  Expected<PlanFile> file = read_plan_file(path);
  if (!file) return file.error();
  if (!file->has_weights) return std::string("not done: the archive has no weights") + later;
  ReplayOptions how;
  how.planned = path;
  how.steps = options.replay_steps;
  Expected<ReplayResult> result = replay(how, *file);
  if (!result && result.error().code == Exit::kVerification) {
    Error error = result.error();
    error.message = "the plan does not compute what its original does; nothing is written\n  " + error.message;
    error.help = "this is a fault of memscale: please report it; --replay-steps 0 writes the archive all the same, to look at";
    return error;
  }
  if (!result) return "not done: " + result.error().message;
  return std::to_string(how.steps) + (how.steps == 1 ? " step" : " steps") +
         " on random inputs beside the original, equal in every bit" +
         (result->finite ? "" : " (the outputs were not finite, so it says little)");
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
  if (given.print_config) return print_result(driver::print_config(*options)) ? 0 : static_cast<int>(Exit::kUsage);
  if (Expected<Success> checked = driver::check_options(*options); !checked) return report_error(checked.error());

  for (const std::string& path : {options->output, options->report, options->emit_to}) {
    if (!path.empty()) remove_on_signal(driver::temporary_name(path));
  }
  Progress progress(options->verbosity);
  Expected<driver::CompileResult> result = driver::compile(
      *options, {[&](const std::string& phase) { progress.phase(phase); },
                 [&](const std::string& path, const fb::PlanT& plan) { return replay_archive(*options, path, plan); }});
  progress.phase("");
  if (!result) return report_error(result.error());
  if (options->verbosity >= 0) {
    for (const std::string& warning : result->report.warnings) report_warning(warning);
  }
  if (Expected<Success> written = write_results(*options, *result); !written) return report_error(written.error());
  return 0;
}

}  // namespace memscale::cli

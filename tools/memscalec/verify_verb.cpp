// memscalec verify: the plan's structure, and a replay beside the original graph.
#include <CLI/CLI.hpp>

#include "tools/memscalec/command_line.h"
#include "tools/memscalec/plan_file.h"
#include "tools/memscalec/replay.h"
#include "tools/memscalec/terminal.h"

namespace memscale::cli {

int run_verify(const Arguments& arguments) {
  CLI::App app(
      "Checks a planned archive: reads its plan anew, and trains it beside its original graph on random inputs, on the CPU. "
      "Every output,\n"
      "gradient, buffer and the state of the random generator must be equal in every bit. Exit code 5 names the first "
      "difference.",
      "memscalec verify");
  ReplayOptions options;
  bool quiet = false;
  app.add_option("archive", options.planned, "planned archive, NAME.ms.pt")->required()->type_name("FILE");
  app.add_option("--against", options.against, "compare with this original archive, not with the graph inside")
      ->type_name("FILE");
  app.add_option("--steps", options.steps, "training steps (default: 3); 0 checks the plan's structure alone")
      ->check(CLI::Range(0, 1000000).description(""))
      ->type_name("N");
  app.add_option("--seed", options.seed, "of inputs and random draws (default: 0)")->type_name("N");
  app.add_flag("-q,--quiet", quiet, "print nothing but errors");
  if (const int code = parse(app, arguments); code >= 0) return code;

  Progress progress(quiet ? -1 : 0);
  progress.phase("reading the plan");
  Expected<PlanFile> file = read_plan_file(options.planned);
  if (!file) return report_error(file.error());
  std::string text = "plan: well formed, " + std::to_string(file->plan.forward.size()) + " forward and " +
                     std::to_string(file->plan.backward.size()) + " backward instructions\n";
  if (options.steps == 0) {
    text += "replay: not done (--steps 0)\n";
  } else if (file->plan.target != "cpu") {
    text += "replay: not done: the plan is for " + file->plan.target + ", and memscalec replays on the CPU alone\n";
  } else {
    progress.phase("replaying beside the original");
    Expected<ReplayResult> result = replay(options, *file);
    progress.phase("");
    if (!result) return report_error(result.error());
    text += "replay: " + std::to_string(options.steps) + " steps equal in every bit: " + std::to_string(result->outputs) +
            " outputs, " + std::to_string(result->gradients) + " gradients, " + std::to_string(result->buffers) +
            " buffers, generator\n";
    for (const std::string& input : result->inputs) text += "  input " + input + "\n";
    if (!result->finite)
      report_warning("the outputs on random inputs are not finite: equality says little; compare on real inputs in Python");
    if (!file->has_weights) text += "  the archive has no weights: random ones were used\n";
  }
  progress.phase("");
  return quiet || print_result(text) ? 0 : report_error({Exit::kUsage, "standard output cannot be written", ""});
}

}  // namespace memscale::cli

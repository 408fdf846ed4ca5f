// The message of exit code 3.
#include "compiler/driver/infeasible.h"

#include <algorithm>
#include <cstdio>

#include "compiler/driver/bytes.h"
#include "compiler/planner/solve.h"

namespace memscale::driver {
namespace {

constexpr size_t kShown = 8;

/// Rounded up, so that the budget is met.
std::string enough(int64_t bytes) {
  const int64_t unit = bytes >= (int64_t{64} << 20) ? int64_t{1} << 20 : bytes >= (int64_t{64} << 10) ? 1024 : 1;
  return exact_bytes((bytes + unit - 1) / unit * unit);
}

std::string of_eager(int64_t bytes, int64_t eager) {
  char text[32];
  std::snprintf(text, sizeof text, " (%.3fx)", static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(eager, 1)));
  return text;
}

std::string working_set(const TrainingStep& step, int32_t op_index) {
  const planner::Problem& problem = step.built.problem;
  const planner::Op& op = problem.ops[op_index];
  std::vector<int32_t> needed = op.inputs;
  needed.insert(needed.end(), op.outputs.begin(), op.outputs.end());
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  std::erase_if(needed, [&](int32_t s) { return problem.storages[s].resident; });
  std::stable_sort(needed.begin(), needed.end(),
                   [&](int32_t a, int32_t b) { return problem.storages[a].bytes > problem.storages[b].bytes; });
  std::string text;
  for (size_t i = 0; i < needed.size() && i < kShown; ++i) {
    text += "\n    " + print_bytes(problem.storages[needed[i]].bytes) + "  " + problem.storages[needed[i]].name;
  }
  if (needed.size() > kShown) text += "\n    and " + std::to_string(needed.size() - kShown) + " more";
  if (op.workspace_bytes > 0) text += "\n    " + print_bytes(op.workspace_bytes) + "  workspace of the op";
  return text;
}

}  // namespace

Error explain_infeasible(const TrainingStep& step, const Budget& budget, int64_t budget_bytes, const std::string& reason) {
  std::string text = "the budget of " + print_bytes(budget_bytes) + " (" + budget.text + ") cannot be met";
  const int64_t eager = step.eager_peak_bytes;
  const planner::Plan lowest_plan = planner::find_lowest(step.built.problem);
  const int64_t lowest = std::max(lowest_plan.peak_bytes, step.optimizer_peak_bytes);
  if (lowest <= budget_bytes && !reason.empty())
    return {Exit::kInfeasible, reason, "without --policy the planner takes the best of all"};
  text += ": the lowest peak found is " + print_bytes(lowest) + of_eager(lowest, eager) +
          "\n  held throughout (parameters, buffers, inputs, optimizer state): " + print_bytes(step.static_bytes);
  if (step.optimizer_peak_bytes > budget_bytes) {
    text +=
        "\n  while the optimizer steps (with all gradients and its own temporaries): " + print_bytes(step.optimizer_peak_bytes) +
        ", which no plan changes";
  }
  const planner::Tables tables(step.built.problem);
  if (const planner::Floor floor = tables.order_floor(); floor.op >= 0 && floor.bytes > budget_bytes) {
    const ir::KernelOpInterface call = step.built.calls[floor.op];
    const std::string where = ir::describeLocation(call->getLoc());
    text += "\n  " + step.built.problem.ops[floor.op].name + (where.empty() ? "" : " at " + where) + " needs " +
            print_bytes(floor.bytes) + " at once: what is held throughout, finished outputs and gradients, and" +
            working_set(step, floor.op);
  }
  return {Exit::kInfeasible, text, "--budget " + enough(lowest) + " can be met, and --budget min goes as low as is found"};
}

}  // namespace memscale::driver

//===- Decisions.cpp - A plan told call by call ----------------------------===//
//
// Follows the instances of each storage through the runs. Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/policy/Decisions.h"

#include "llvm/Support/FormatVariadic.h"

using namespace memscale;
using namespace memscale::ir;
using namespace memscale::passes;

std::string memscale::passes::printBytes(int64_t bytes) {
  const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return unit == 0 ? llvm::formatv("{0} bytes", bytes).str() : llvm::formatv("{0:f1} {1}", value, units[unit]).str();
}

namespace {
class Explainer {
public:
  Explainer(const BuiltProblem &built, const planner::Plan &plan)
      : built(built), problem(built.problem), plan(plan), runs(problem.ops.size()), lastRead(problem.storages.size(), -1) {}

  std::vector<Decision> run() {
    for (size_t r = 0; r < plan.runs.size(); ++r) {
      runs[plan.runs[r].op].push_back(r);
      if (!problem.ops[plan.runs[r].op].backward && runs[plan.runs[r].op].size() == 1)
        border = r + 1;
    }
    followInstances();
    std::vector<Decision> decisions;
    for (size_t i = 0; i < problem.ops.size(); ++i)
      if (auto decision = explain(i); !decision.kind.empty())
        decisions.push_back(std::move(decision));
    return decisions;
  }

private:
  /// The last run that reads the first instance of each storage.
  void followInstances() {
    std::vector<bool> second(problem.storages.size(), false), seen(problem.storages.size(), false);
    for (size_t r = 0; r < plan.runs.size(); ++r) {
      const planner::Op &op = problem.ops[plan.runs[r].op];
      for (int32_t input : op.inputs)
        if (!second[input])
          lastRead[input] = r;
      for (int32_t output : op.outputs) {
        second[output] = seen[output];
        seen[output] = true;
      }
    }
  }

  int64_t bytesOf(const planner::Op &op) const {
    int64_t bytes = 0;
    for (int32_t output : op.outputs)
      bytes += problem.storages[output].bytes;
    return bytes;
  }

  std::string callAt(int64_t run) const {
    KernelOpInterface call = built.calls[plan.runs[run].op];
    return "call " + std::to_string(call.getId());
  }

  Decision explain(size_t index) const {
    const planner::Op &op = problem.ops[index];
    Decision decision;
    decision.bytes = bytesOf(op);
    decision.reruns = static_cast<int32_t>(runs[index].size()) - 1;
    decision.added_time_us = decision.reruns * op.time_us;
    int32_t inplace = plan.runs[runs[index].front()].inplace;
    if (decision.reruns > 0) {
      decision.kind = "recompute";
      int64_t last = -1;
      for (int32_t output : op.outputs)
        last = std::max<int64_t>(last, lastRead[output]);
      decision.reason = last < 0 ? "not held" : "not held from " + callAt(last);
      decision.reason += " until " + nextReader(index) + "; " + std::to_string(decision.reruns) + " further " +
                         (decision.reruns == 1 ? "run" : "runs") + ", " +
                         llvm::formatv("{0:f1} us", decision.added_time_us).str();
    } else if (int64_t reader = readAcrossBorder(op); reader >= 0) {
      decision.kind = "keep";
      decision.reason = "held from forward to backward, last read by " + callAt(reader) + "; " +
                        (op.recomputable ? llvm::formatv("running it again would take {0:f1} us", op.time_us).str()
                                         : std::string("it must not run twice"));
    } else if (inplace >= 0) {
      decision.kind = "inplace";
      const planner::Storage &taken = problem.storages[op.inplace[inplace].input];
      decision.bytes = std::min(decision.bytes, taken.bytes);
      decision.reason = "takes over the memory of " + taken.name + ", which is read for the last time here";
    } else {
      return {};
    }
    KernelOpInterface call = built.calls[index];
    SourceLocation source = getSourceLocation(call.getLoc());
    decision.tensor = describeCall(call);
    decision.op = op.name;
    decision.call = call.getId();
    decision.file = source.file.str();
    decision.line = source.line;
    decision.module_path = source.modulePath.str();
    return decision;
  }

  /// What the first rerun is for: the next run that reads one of its results.
  std::string nextReader(size_t index) const {
    const auto &outputs = problem.ops[index].outputs;
    for (size_t r = runs[index][1] + 1; r < plan.runs.size(); ++r)
      for (int32_t input : problem.ops[plan.runs[r].op].inputs)
        if (llvm::is_contained(outputs, input))
          return callAt(r) + (runs[plan.runs[r].op].front() == r ? "" : " runs again");
    return "its further run";
  }

  int64_t readAcrossBorder(const planner::Op &op) const {
    if (op.backward)
      return -1;
    int64_t last = -1;
    for (int32_t output : op.outputs)
      last = std::max<int64_t>(last, lastRead[output]);
    return last >= static_cast<int64_t>(border) ? last : -1;
  }

  const BuiltProblem &built;
  const planner::Problem &problem;
  const planner::Plan &plan;
  std::vector<std::vector<size_t>> runs;
  std::vector<int64_t> lastRead;
  size_t border = 0;
};
} // namespace

std::vector<Decision> memscale::passes::explainPlan(const BuiltProblem &built, const planner::Plan &plan) {
  return Explainer(built, plan).run();
}

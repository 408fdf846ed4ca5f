// See simulate.h. Two sweeps: the first finds the last read of every instance, the second walks memory.
#include "compiler/simulate/simulate.h"

#include <algorithm>
#include <string>
#include <utility>

namespace memscale::simulate {
namespace {

using planner::InPlace;
using planner::Op;
using planner::Problem;
using planner::Run;

struct Instances {
  std::vector<int32_t> first_output;  // per run, index of its first instance; the instances of a run follow Op::outputs
  std::vector<int32_t> storage;       // per instance
  std::vector<int32_t> last_read;     // per instance; number of runs: kept to the end
};

Error missing(const Problem& problem, size_t run, int32_t op, int32_t storage) {
  return {Exit::kInternal,
          "run " + std::to_string(run) + " (op " + std::to_string(op) + ", " + problem.ops[op].name + ") reads storage " +
              std::to_string(storage) + " (" + problem.storages[storage].name + "), which no earlier run has produced",
          ""};
}

/// Calls f(storage) for what the op reads or mutates, resident storages left out, each once.
template <class F>
void for_each_use(const Problem& problem, const Op& op, F f) {
  for (int32_t s : op.inputs)
    if (!problem.storages[s].resident) f(s);
  for (int32_t s : op.mutates)
    if (!problem.storages[s].resident && !std::binary_search(op.inputs.begin(), op.inputs.end(), s)) f(s);
}

Expected<Instances> find_instances(const Problem& problem, std::span<const Run> runs) {
  Instances found;
  const auto end = static_cast<int32_t>(runs.size());
  std::vector<int32_t> current(problem.storages.size(), -1);
  found.first_output.reserve(runs.size());
  for (int32_t i = 0; i < end; ++i) {
    if (runs[i].op < 0 || runs[i].op >= static_cast<int32_t>(problem.ops.size()))
      return Error{
          Exit::kInternal,
          "run " + std::to_string(i) + " names op " + std::to_string(runs[i].op) + " of " + std::to_string(problem.ops.size()),
          ""};
    const Op& op = problem.ops[runs[i].op];
    int32_t lost = -1;
    for_each_use(problem, op, [&](int32_t s) {
      if (current[s] < 0) {
        lost = s;
        return;
      }
      found.last_read[current[s]] = std::max(found.last_read[current[s]], i);
    });
    if (lost >= 0) return missing(problem, i, runs[i].op, lost);
    found.first_output.push_back(static_cast<int32_t>(found.storage.size()));
    for (int32_t s : op.outputs) {
      const bool kept = problem.storages[s].keep && current[s] < 0;
      current[s] = static_cast<int32_t>(found.storage.size());
      found.storage.push_back(s);
      found.last_read.push_back(kept ? end : i);
    }
  }
  return found;
}

bool inplace_legal(const Problem& problem, const Op& op, const InPlace& candidate, const Instances& instances,
                   const std::vector<int32_t>& current, int32_t run) {
  const int32_t input = candidate.input;
  if (problem.storages[input].resident || std::binary_search(op.mutates.begin(), op.mutates.end(), input)) return false;
  return problem.storages[input].bytes == problem.storages[candidate.output].bytes && instances.last_read[current[input]] == run;
}

}  // namespace

int64_t base_bytes(const Problem& problem) {
  int64_t bytes = problem.static_bytes;
  for (const auto& s : problem.storages)
    if (s.resident) bytes += s.bytes;
  return bytes;
}

Expected<Report> simulate(const Problem& problem, std::span<const Run> runs) {
  auto found = find_instances(problem, runs);
  if (!found) return found.error();
  const Instances& instances = *found;
  Report report;
  const auto end = static_cast<int32_t>(runs.size());
  report.curve.reserve(runs.size());
  report.after.reserve(runs.size());
  std::vector<int32_t> current(problem.storages.size(), -1);
  int64_t live = base_bytes(problem);
  report.peak_bytes = live;
  for (int32_t i = 0; i < end; ++i) {
    const Op& op = problem.ops[runs[i].op];
    int64_t taken = 0;
    if (runs[i].inplace >= 0) {
      if (runs[i].inplace >= static_cast<int32_t>(op.inplace.size()) ||
          !inplace_legal(problem, op, op.inplace[runs[i].inplace], instances, current, i))
        return Error{Exit::kInternal,
                     "run " + std::to_string(i) + " (" + op.name + ") takes in-place candidate " +
                         std::to_string(runs[i].inplace) + ", which is not legal there",
                     ""};
      taken = problem.storages[op.inplace[runs[i].inplace].output].bytes;
    }
    int64_t freed = 0;
    for_each_use(problem, op, [&](int32_t s) {
      if (instances.last_read[current[s]] == i) freed += problem.storages[s].bytes;
    });
    int32_t instance = instances.first_output[i];
    for (int32_t s : op.outputs) {
      live += problem.storages[s].bytes;
      if (instances.last_read[instance] == i) freed += problem.storages[s].bytes;
      current[s] = instance++;
    }
    const int64_t now = live + op.workspace_bytes - taken;
    report.curve.push_back(now);
    if (now > report.peak_bytes || report.peak_run < 0) {
      report.peak_bytes = std::max(report.peak_bytes, now);
      report.peak_run = i;
    }
    live -= freed;
    report.after.push_back(live);
    report.time_us += op.time_us;
  }
  for (int32_t i = 0; i < end; ++i) {
    const int32_t stop = i + 1 < end ? instances.first_output[i + 1] : static_cast<int32_t>(instances.storage.size());
    for (int32_t k = instances.first_output[i]; k < stop; ++k)
      if (i <= report.peak_run && report.peak_run <= instances.last_read[k]) report.live_at_peak.push_back(instances.storage[k]);
  }
  auto& at_peak = report.live_at_peak;
  std::sort(at_peak.begin(), at_peak.end());
  at_peak.erase(std::unique(at_peak.begin(), at_peak.end()), at_peak.end());
  std::stable_sort(at_peak.begin(), at_peak.end(),
                   [&](int32_t a, int32_t b) { return problem.storages[a].bytes > problem.storages[b].bytes; });
  return report;
}

void assign_inplace(const Problem& problem, std::vector<Run>& runs) {
  auto found = find_instances(problem, runs);
  if (!found) return;  // simulate() tells what is wrong with such runs
  std::vector<int32_t> current(problem.storages.size(), -1);
  for (int32_t i = 0; i < static_cast<int32_t>(runs.size()); ++i) {
    const Op& op = problem.ops[runs[i].op];
    runs[i].inplace = -1;
    int64_t best = 0;
    for (size_t k = 0; k < op.inplace.size(); ++k) {
      const int64_t bytes = problem.storages[op.inplace[k].output].bytes;
      if (bytes <= best || !inplace_legal(problem, op, op.inplace[k], *found, current, i)) continue;
      best = bytes;
      runs[i].inplace = static_cast<int32_t>(k);
    }
    int32_t instance = found->first_output[i];
    for (int32_t s : op.outputs) current[s] = instance++;
  }
}

std::vector<Run> save_all(const Problem& problem, InPlaceUse use) {
  std::vector<Run> runs(problem.ops.size());
  for (size_t i = 0; i < runs.size(); ++i) runs[i].op = static_cast<int32_t>(i);
  if (use == InPlaceUse::kBest) assign_inplace(problem, runs);
  return runs;
}

int64_t eager_peak_bytes(const Problem& problem) {
  const auto report = simulate(problem, save_all(problem));
  if (!report) return 0;
  int64_t peak = report->peak_bytes;
  for (size_t i = 0; i < problem.eager_extra_bytes.size() && i < report->curve.size(); ++i)
    peak = std::max(peak, report->curve[i] + problem.eager_extra_bytes[i]);
  return peak;
}

Expected<planner::Plan> make_plan(const Problem& problem, std::vector<Run> runs, const char* policy) {
  auto report = simulate(problem, runs);
  if (!report) return report.error();
  planner::Plan plan;
  plan.runs = std::move(runs);
  plan.peak_bytes = report->peak_bytes;
  plan.peak_run = report->peak_run;
  plan.time_us = report->time_us;
  for (const auto& op : problem.ops) plan.base_time_us += op.time_us;
  plan.policy = policy;
  return plan;
}

}  // namespace memscale::simulate

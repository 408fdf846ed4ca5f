// What a compilation decided and what it expects: one structure behind the text report, the JSON report, --explain and the record
// in the archive (docs/reports.md). Plain C++: neither torch nor MLIR. Needs and destroys nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memscale::report {

struct Location {
  std::string file;  // empty: unknown
  int line = 0;
  std::string module_path;
};

/// What happens to the results of one call.
struct Decision {
  std::string kind;    // "recompute", "keep", "inplace"
  std::string tensor;  // "transformer.h.3.mlp / aten::gelu #512"
  std::string op;      // "aten::gelu"
  int32_t call = -1;   // number of the call in the captured step
  int64_t bytes = 0;
  int32_t reruns = 0;
  double added_time_us = 0;
  std::string reason;
  Location location;
};

struct Baseline {
  std::string name;
  int64_t peak_bytes = 0;
  double time_us = 0;
};

struct LiveStorage {
  std::string name;
  std::string role;  // "activation", "gradient", "output"
  int64_t bytes = 0;
  Location location;
};

/// An op whose transient memory no table entry states.
struct UnknownWorkspace {
  std::string op;
  int64_t calls = 0;
};

struct Phase {
  std::string name;
  double seconds = 0;
};

struct Report {
  std::string producer;
  std::string model;   // file name, without its folder
  std::string format;  // "torchscript", "torch.export"
  int64_t parameters = 0, parameter_bytes = 0, buffer_bytes = 0;
  int64_t forward_calls = 0, backward_calls = 0;

  std::string target, device;
  int64_t target_memory_bytes = 0;  // 0: the profile does not say

  std::string budget;  // as given
  int64_t budget_bytes = 0;
  bool applied = true;  // false: no plan beats doing nothing, so the step runs as captured, or needs none

  std::string optimizer;
  int64_t optimizer_state_bytes = 0, optimizer_temporary_bytes = 0;

  // Peaks of a whole training step: forward, backward, optimizer.
  int64_t eager_peak_bytes = 0, save_all_peak_bytes = 0, planned_peak_bytes = 0, lower_bound_bytes = 0;
  int64_t optimizer_peak_bytes = 0;  // while the optimizer steps
  int64_t static_bytes = 0;          // held throughout: parameters, buffers, inputs, optimizer state
  std::string peak_op;               // where the plan peaks
  Location peak_location;
  std::vector<LiveStorage> live_at_peak;  // largest first, beside what is static

  double base_time_us = 0, planned_time_us = 0;
  std::string policy;
  std::vector<Baseline> baselines;
  std::vector<Decision> decisions;  // largest first
  std::vector<UnknownWorkspace> unknown_workspaces;
  double error_percent = 0;  // stated bound of the predicted peaks
  std::string replay;        // what came of running the plan beside its original: one sentence; empty if nothing was written
  std::vector<std::string> warnings;
  std::vector<Phase> phases;  // times of this compilation; not in the archive, whose bytes depend on the input alone
};

/// memscale.report/1. `with_times`: the phases too.
std::string to_json(const Report& report, bool with_times);

/// One screen: peaks, time, baselines, the largest decisions, warnings.
std::string to_text(const Report& report);

/// Every decision whose tensor, op or module path contains `tensor` (all if it is empty), with its reason.
std::string explain(const Report& report, const std::string& tensor);

/// "model.py:12", "model.py:12 (h.3.attn)" or "".
std::string print_location(const Location& location);

}  // namespace memscale::report

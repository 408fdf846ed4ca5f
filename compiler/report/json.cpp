// The JSON report, memscale.report/1 (docs/reports.md).
#include <cmath>
#include <nlohmann/json.hpp>

#include "compiler/report/report.h"

namespace memscale::report {
namespace {

using json = nlohmann::ordered_json;

/// Times are stored to the nanosecond, so that text and archive do not depend on the last bits of a sum.
double rounded(double us) { return std::round(us * 1000) / 1000; }

void add_location(json& object, const Location& location) {
  if (!location.module_path.empty()) object["module"] = location.module_path;
  if (location.file.empty()) return;
  object["file"] = location.file;
  object["line"] = location.line;
}

json decision_json(const Decision& d) {
  json object = {{"kind", d.kind}, {"tensor", d.tensor}, {"op", d.op}, {"call", d.call}, {"bytes", d.bytes}};
  if (d.reruns > 0) {
    object["reruns"] = d.reruns;
    object["added_time_us"] = rounded(d.added_time_us);
  }
  object["reason"] = d.reason;
  add_location(object, d.location);
  return object;
}

json counts_json(const Report& report) {
  json counts = json::object();
  for (const char* kind : {"recompute", "inplace", "keep"}) {
    int64_t count = 0, bytes = 0;
    double time = 0;
    for (const Decision& d : report.decisions) {
      if (d.kind != kind) continue;
      ++count;
      bytes += d.bytes;
      time += d.added_time_us;
    }
    counts[kind] = {{"count", count}, {"bytes", bytes}, {"added_time_us", rounded(time)}};
  }
  return counts;
}

}  // namespace

std::string to_json(const Report& r, bool with_times) {
  json root;
  root["schema"] = "memscale.report/1";
  root["producer"] = r.producer;
  root["model"] = {{"file", r.model},
                   {"format", r.format},
                   {"parameters", r.parameters},
                   {"parameter_bytes", r.parameter_bytes},
                   {"buffer_bytes", r.buffer_bytes},
                   {"forward_calls", r.forward_calls},
                   {"backward_calls", r.backward_calls}};
  root["target"] = {{"name", r.target}, {"device", r.device}, {"memory_bytes", r.target_memory_bytes}};
  root["budget"] = {{"text", r.budget}, {"bytes", r.budget_bytes}};
  root["optimizer"] = {
      {"name", r.optimizer}, {"state_bytes", r.optimizer_state_bytes}, {"temporary_bytes", r.optimizer_temporary_bytes}};
  root["peaks"] = {{"eager_bytes", r.eager_peak_bytes},
                   {"save_all_bytes", r.save_all_peak_bytes},
                   {"planned_bytes", r.planned_peak_bytes},
                   {"lower_bound_bytes", r.lower_bound_bytes},
                   {"optimizer_step_bytes", r.optimizer_peak_bytes},
                   {"static_bytes", r.static_bytes},
                   {"error_percent", r.error_percent}};
  json peak = {{"op", r.peak_op}};
  add_location(peak, r.peak_location);
  peak["live"] = json::array();
  for (const LiveStorage& s : r.live_at_peak) {
    json object = {{"name", s.name}, {"role", s.role}, {"bytes", s.bytes}};
    add_location(object, s.location);
    peak["live"].push_back(std::move(object));
  }
  root["peak"] = std::move(peak);
  root["time"] = {{"base_us", rounded(r.base_time_us)}, {"planned_us", rounded(r.planned_time_us)}};
  root["applied"] = r.applied;
  root["policy"] = r.policy;
  root["baselines"] = json::array();
  for (const Baseline& b : r.baselines) {
    root["baselines"].push_back({{"name", b.name}, {"peak_bytes", b.peak_bytes}, {"time_us", rounded(b.time_us)}});
  }
  root["counts"] = counts_json(r);
  root["decisions"] = json::array();
  for (const Decision& d : r.decisions) root["decisions"].push_back(decision_json(d));
  root["unknown_workspaces"] = json::array();
  for (const UnknownWorkspace& u : r.unknown_workspaces) root["unknown_workspaces"].push_back({{"op", u.op}, {"calls", u.calls}});
  if (!r.replay.empty()) root["replay"] = r.replay;
  root["warnings"] = r.warnings;
  if (with_times) {
    root["compile_time_s"] = json::object();
    for (const Phase& p : r.phases) root["compile_time_s"][p.name] = std::round(p.seconds * 1e6) / 1e6;
  }
  // Names come from archives and need not be UTF-8.
  return root.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

}  // namespace memscale::report

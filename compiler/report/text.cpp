// The text report and --explain.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "compiler/report/report.h"

namespace memscale::report {
namespace {

constexpr size_t kShownDecisions = 8, kShownLive = 6;

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

std::string size(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= (int64_t{1} << 30)) return format("%.3f GiB", b / 1073741824.0);
  if (bytes >= (int64_t{1} << 20)) return format("%.1f MiB", b / 1048576.0);
  if (bytes >= 1024) return format("%.1f KiB", b / 1024.0);
  return format("%lld B", static_cast<long long>(bytes));
}

std::string time(double us) {
  if (us >= 1e6) return format("%.3f s", us / 1e6);
  if (us >= 1e3) return format("%.3f ms", us / 1e3);
  return format("%.1f us", us);
}

std::string share(int64_t part, int64_t whole) {
  return whole <= 0 ? "" : format("%.3fx", static_cast<double>(part) / static_cast<double>(whole));
}

std::string ratio(double time_us, double base_us) { return base_us > 0 ? format("%.3fx", time_us / base_us) : ""; }

std::string clipped(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string decision_line(const Decision& d) {
  const std::string where = print_location(d.location);
  return format("  %-9s %10s  ", d.kind.c_str(), size(d.bytes).c_str()) + d.tensor + (where.empty() ? "" : "  at " + where) +
         "\n" + (d.reason.empty() ? "" : format("  %21s  ", "") + d.reason + "\n");
}

std::string peaks(const Report& r) {
  std::string text = format("  %-34s %12s %9s\n", "peak of a training step", "bytes", "of eager");
  const auto line = [&](const char* name, int64_t bytes) {
    text += format("  %-34s %12s %9s\n", name, size(bytes).c_str(), share(bytes, r.eager_peak_bytes).c_str());
  };
  line("eager", r.eager_peak_bytes);
  line("save-all, in this plan's terms", r.save_all_peak_bytes);
  line("planned", r.planned_peak_bytes);
  line("no plan can be below", r.lower_bound_bytes);
  line("while the optimizer steps", r.optimizer_peak_bytes);
  line("held throughout", r.static_bytes);
  return text;
}

std::string table(const Report& r) {
  std::string text = format("  %-34s %12s %9s %12s %9s\n", "plan", "peak", "of eager", "time", "of base");
  const auto line = [&](const std::string& name, int64_t bytes, double us) {
    text += format("  %-34s %12s %9s %12s %9s\n", clipped(name, 34).c_str(), size(bytes).c_str(),
                   share(bytes, r.eager_peak_bytes).c_str(), time(us).c_str(), ratio(us, r.base_time_us).c_str());
  };
  line("this plan (" + r.policy + ")", r.planned_peak_bytes, r.planned_time_us);
  for (const Baseline& b : r.baselines) line(b.name, b.peak_bytes, b.time_us);
  return text;
}

std::string decisions(const Report& r) {
  std::string text;
  for (const char* kind : {"recompute", "inplace", "keep"}) {
    int64_t count = 0, bytes = 0;
    double added = 0;
    for (const Decision& d : r.decisions) {
      if (d.kind != kind) continue;
      ++count;
      bytes += d.bytes;
      added += d.added_time_us;
    }
    if (count == 0) continue;
    text += format("  %-9s %10s  in %lld calls", kind, size(bytes).c_str(), static_cast<long long>(count));
    text += added > 0 ? ", " + time(added) + " more\n" : "\n";
  }
  if (text.empty()) return "  none: every tensor is held until its last use\n";
  std::vector<const Decision*> shown;
  for (const Decision& d : r.decisions) {
    if (d.kind != "keep") shown.push_back(&d);
  }
  if (!shown.empty()) text += "the largest:\n";
  for (size_t i = 0; i < shown.size() && i < kShownDecisions; ++i) text += decision_line(*shown[i]);
  return text;
}

}  // namespace

std::string print_location(const Location& location) {
  std::string text = location.file.empty() ? "" : location.file + ":" + std::to_string(location.line);
  if (!location.module_path.empty()) text += (text.empty() ? "" : " ") + ("(" + location.module_path + ")");
  return text;
}

std::string to_text(const Report& r) {
  std::string text = r.model + " (" + r.format + "): " + size(r.parameter_bytes) + " in " + std::to_string(r.parameters) +
                     " parameters, " + std::to_string(r.forward_calls) + " forward and " + std::to_string(r.backward_calls) +
                     " backward calls\n";
  text +=
      "target " + r.target + (r.target_memory_bytes > 0 ? " (" + size(r.target_memory_bytes) + ")" : "") + ", budget " + r.budget;
  if (r.budget_bytes > 0) text += " = " + size(r.budget_bytes);
  text += ", optimizer " + r.optimizer + " (" + size(r.optimizer_state_bytes) + " of state)\n\n";
  text += peaks(r) + format("  predicted peaks hold within %.1f %%\n\n", r.error_percent);
  text += table(r) + "\n";
  if (!r.applied) text += "nothing to decide: the step fits the budget as it is\n";
  text += "decisions:\n" + decisions(r);
  if (!r.peak_op.empty()) {
    const std::string where = print_location(r.peak_location);
    text +=
        "\nthe peak is at " + r.peak_op + (where.empty() ? "" : ", " + where) + "; beside what is held throughout, live there:\n";
    for (size_t i = 0; i < r.live_at_peak.size() && i < kShownLive; ++i) {
      const LiveStorage& s = r.live_at_peak[i];
      const std::string at = print_location(s.location);
      text += format("  %-9s %10s  ", s.role.c_str(), size(s.bytes).c_str()) + s.name + (at.empty() ? "" : "  at " + at) + "\n";
    }
    if (r.live_at_peak.size() > kShownLive) text += "  and " + std::to_string(r.live_at_peak.size() - kShownLive) + " more\n";
  }
  if (!r.unknown_workspaces.empty()) {
    text += "\nops without an entry in the target's workspace table (counted as none; the stated error is wider for it):\n ";
    for (const UnknownWorkspace& u : r.unknown_workspaces) text += " " + u.op + " (" + std::to_string(u.calls) + ")";
    text += "\n";
  }
  if (!r.replay.empty()) text += "\nreplay: " + r.replay + "\n";
  for (const std::string& warning : r.warnings) text += "\nwarning: " + warning + "\n";
  if (!r.phases.empty()) {
    double total = 0;
    for (const Phase& p : r.phases) total += p.seconds;
    text += format("\ncompiled in %.2f s:", total);
    for (const Phase& p : r.phases) text += " " + p.name + format(" %.2f", p.seconds) + (&p == &r.phases.back() ? "\n" : ",");
  }
  return text;
}

std::string explain(const Report& r, const std::string& tensor) {
  std::string text;
  for (const Decision& d : r.decisions) {
    if (!tensor.empty() && d.tensor.find(tensor) == std::string::npos && d.op.find(tensor) == std::string::npos &&
        d.location.module_path.find(tensor) == std::string::npos) {
      continue;
    }
    text += decision_line(d);
  }
  if (!text.empty()) return text;
  return tensor.empty()
             ? "no decisions: every tensor is held until its last use\n"
             : "no decision about '" + tensor + "': tensors are named by module path, op and call, as in --report FILE.json\n";
}

}  // namespace memscale::report

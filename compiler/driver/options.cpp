// The table of settings.
#include "compiler/driver/options.h"

#include <charconv>

#include "compiler/driver/shape.h"
#include "compiler/driver/suggest.h"

namespace memscale::driver {
namespace {

using Options = CompileOptions;
using Texts = std::vector<std::string>;

constexpr std::pair<const char*, Emit> kEmits[] = {{"captured", Emit::kCaptured},   {"planned", Emit::kPlanned},
                                                   {"rewritten", Emit::kRewritten}, {"scheduled", Emit::kScheduled},
                                                   {"plan", Emit::kPlan},           {"problem", Emit::kProblem}};

Texts one(const std::string& text) { return text.empty() ? Texts{} : Texts{text}; }

template <class T>
Expected<Success> assign(Expected<T> parsed, T& place) {
  if (!parsed) return parsed.error();
  place = std::move(*parsed);
  return Success{};
}

Expected<Success> set_flag(const char* key, const std::string& value, bool& place) {
  if (value != "true" && value != "false") {
    return Error{Exit::kUsage, std::string(key) + ": expected true or false, found '" + value + "'", ""};
  }
  place = value == "true";
  return Success{};
}

Expected<Success> set_text(const char* key, const std::string& value, std::string& place) {
  if (value.empty()) return Error{Exit::kUsage, "--" + std::string(key) + ": the value is empty", ""};
  place = value;
  return Success{};
}

Expected<Success> set_emit(Options& options, const std::string& value) {
  Texts known;
  for (const auto& [name, emit] : kEmits) {
    known.push_back(name);
    if (value == name) {
      options.emit = emit;
      return Success{};
    }
  }
  return Error{Exit::kUsage, "--emit: unknown form '" + value + "'", suggestion(value, known)};
}

Expected<Success> set_count(const std::string& key, const std::string& value, int least, int most, int& target) {
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < least || count > most) {
    return Error{Exit::kUsage,
                 "--" + key + ": expected a number from " + std::to_string(least) + " to " + std::to_string(most) + ", found '" +
                     value + "'",
                 ""};
  }
  target = count;
  return Success{};
}

Expected<Success> add_shape(Options& options, const std::string& value) {
  Expected<capture::InputSpec> spec = parse_shape(value);
  if (!spec) return spec.error();
  options.shapes.push_back(std::move(*spec));
  return Success{};
}

Texts get_shapes(const Options& options) {
  Texts texts;
  for (const auto& spec : options.shapes) texts.push_back(print_shape(spec));
  return texts;
}

Expected<Success> set_verbosity(Options& options, const std::string& value, const char* key, int level) {
  bool on = false;
  Expected<Success> read = set_flag(key, value, on);
  if (!read) return read;
  if (on && options.verbosity == -level)
    return Error{Exit::kUsage, "--verbose and --quiet contradict each other", "give one of them"};
  if (on) options.verbosity = level;
  return Success{};
}

const char* bool_text(bool value) { return value ? "true" : "false"; }

std::vector<Setting> make_settings() {
  using Form = Setting::Form;
  return {
      {Form::kValue, "input", "FILE", "training graph: a TorchScript archive (.pt) or a torch.export archive (.pt2)",
       [](Options& o, const std::string& v) { return set_text("input", v, o.input); },
       [](const Options& o) { return one(o.input); }},
      {Form::kValue, "output", "FILE", "planned archive to write, as a rule NAME.ms.pt",
       [](Options& o, const std::string& v) { return set_text("output", v, o.output); },
       [](const Options& o) { return one(o.output); }},
      {Form::kValue, "budget", "SIZE",
       "peak of a step: 12GiB, 600MiB, 0.6x of eager's peak, min, auto (the target's memory; default)",
       [](Options& o, const std::string& v) { return assign(parse_budget(v), o.budget); },
       [](const Options& o) { return one(o.budget.text); }},
      {Form::kValue, "target", "NAME|FILE", "target profile: a name (cpu, h200) or a YAML file (default: cpu)",
       [](Options& o, const std::string& v) { return set_text("target", v, o.target); },
       [](const Options& o) { return one(o.target); }},
      {Form::kList, "shape", "SPEC", "shape of an input, by name or position: ids=8x128:int64, 'n=():float32', x=4x4:bf16:grad",
       add_shape, get_shapes, [](Options& o) { o.shapes.clear(); }},
      {Form::kValue, "optimizer", "NAME",
       "whose state the peak counts: adamw (default), sgd, sgd:momentum, each with :fused, :foreach, "
       ":none; none",
       [](Options& o, const std::string& v) { return assign(parse_optimizer(v), o.optimizer); },
       [](const Options& o) { return one(o.optimizer.text); }},
      {Form::kValue, "policy", "NAME", "one member of the planner's portfolio instead of the best of all",
       [](Options& o, const std::string& v) { return set_text("policy", v, o.policy); },
       [](const Options& o) { return one(o.policy); }},
      {Form::kFlag, "all-tangents", "", "every differentiable output takes an incoming gradient, not the loss alone",
       [](Options& o, const std::string& v) { return set_flag("all-tangents", v, o.all_tangents); },
       [](const Options& o) { return Texts{bool_text(o.all_tangents)}; }},
      {Form::kFlag, "deterministic", "", "for training under torch.use_deterministic_algorithms(True)",
       [](Options& o, const std::string& v) { return set_flag("deterministic", v, o.deterministic); },
       [](const Options& o) { return Texts{bool_text(o.deterministic)}; }},
      {Form::kValue, "threads", "N", "intra-op threads of the process that will train (CPU; default: this machine's)",
       [](Options& o, const std::string& v) { return set_count("threads", v, 1, 4096, o.threads); },
       [](const Options& o) { return o.threads == 0 ? Texts{} : Texts{std::to_string(o.threads)}; }},
      {Form::kValue, "search-rounds", "N", "plans that the planner tries beyond its portfolio (default: 0)",
       [](Options& o, const std::string& v) { return set_count("search-rounds", v, 0, 1'000'000, o.search_rounds); },
       [](const Options& o) { return o.search_rounds == 0 ? Texts{} : Texts{std::to_string(o.search_rounds)}; }},
      {Form::kValue, "replay-steps", "N",
       "training steps of plan and original side by side before the archive is put in place (default: 1)",
       [](Options& o, const std::string& v) { return set_count("replay-steps", v, 0, 1000, o.replay_steps); },
       [](const Options& o) { return Texts{std::to_string(o.replay_steps)}; }},
      {Form::kFlag, "dry-run", "", "plan and report, write no archive",
       [](Options& o, const std::string& v) { return set_flag("dry-run", v, o.dry_run); },
       [](const Options& o) { return Texts{bool_text(o.dry_run)}; }},
      {Form::kOptionalValue, "explain", "TENSOR", "say why each tensor (or those with this name) is kept or recomputed",
       [](Options& o, const std::string& v) -> Expected<Success> {
         o.explain = v == "*" ? "" : v;
         return Success{};
       },
       [](const Options& o) { return !o.explain ? Texts{} : Texts{o.explain->empty() ? "*" : *o.explain}; }},
      {Form::kValue, "report", "FILE", "write the report: FILE.json or FILE.txt",
       [](Options& o, const std::string& v) { return set_text("report", v, o.report); },
       [](const Options& o) { return one(o.report); }},
      {Form::kValue, "emit", "FORM",
       "print captured, planned, rewritten or scheduled IR, or the plan or problem as JSON; no archive", set_emit,
       [](const Options& o) { return o.emit == Emit::kNothing ? Texts{} : Texts{emit_name(o.emit)}; }},
      {Form::kValue, "emit-to", "FILE", "where --emit writes (default: standard output)",
       [](Options& o, const std::string& v) { return set_text("emit-to", v, o.emit_to); },
       [](const Options& o) { return one(o.emit_to); }},
      {Form::kFlag, "verbose", "", "name each phase and its time on standard error",
       [](Options& o, const std::string& v) { return set_verbosity(o, v, "verbose", 1); },
       [](const Options& o) { return Texts{bool_text(o.verbosity > 0)}; }},
      {Form::kFlag, "quiet", "", "print nothing but errors",
       [](Options& o, const std::string& v) { return set_verbosity(o, v, "quiet", -1); },
       [](const Options& o) { return Texts{bool_text(o.verbosity < 0)}; }},
  };
}

bool has_extension(const std::string& path, const char* extension) { return path.ends_with(extension); }

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table = make_settings();
  return table;
}

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : settings()) {
    if (key == setting.key) return &setting;
  }
  return nullptr;
}

std::vector<std::string> setting_keys() {
  std::vector<std::string> keys;
  for (const Setting& setting : settings()) keys.push_back(setting.key);
  return keys;
}

const char* emit_name(Emit emit) {
  for (const auto& [name, known] : kEmits) {
    if (known == emit) return name;
  }
  return "nothing";
}

Expected<Success> check_options(const CompileOptions& options) {
  if (options.input.empty())
    return Error{Exit::kUsage, "no input given", "memscalec IN -o OUT, where IN is a .pt or .pt2 archive"};
  if (options.output.empty() && !options.dry_run && options.emit == Emit::kNothing) {
    return Error{Exit::kUsage, "no output given", "-o OUT.ms.pt writes the planned archive; --dry-run plans and reports alone"};
  }
  if (!options.report.empty() && !has_extension(options.report, ".json") && !has_extension(options.report, ".txt")) {
    return Error{Exit::kUsage, "--report: expected a name that ends in .json or .txt, found '" + options.report + "'", ""};
  }
  if (!options.report.empty() && (options.emit == Emit::kCaptured || options.emit == Emit::kProblem)) {
    return Error{Exit::kUsage,
                 "--report with --emit " + std::string(emit_name(options.emit)) + ": nothing has been planned there",
                 "leave one of them out, or emit a later form"};
  }
  if (options.explain && options.emit != Emit::kNothing && options.emit_to.empty()) {
    return Error{Exit::kUsage, "--explain and --emit both write to standard output", "name a file: --emit-to FILE"};
  }
  if (!options.emit_to.empty() && options.emit == Emit::kNothing) {
    return Error{Exit::kUsage, "--emit-to without --emit",
                 "say what to write: --emit captured|planned|rewritten|scheduled|plan|problem"};
  }
  return Success{};
}

}  // namespace memscale::driver

// The compiler, phase by phase. Needs options that passed check_options; writes the archive last.
#include "compiler/driver/driver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>

#include "compiler/driver/bytes.h"
#include "compiler/driver/diagnostics.h"
#include "compiler/driver/files.h"
#include "compiler/driver/infeasible.h"
#include "compiler/driver/ir_from_graph.h"
#include "compiler/driver/report_of.h"
#include "compiler/driver/suggest.h"
#include "compiler/driver/target.h"
#include "compiler/driver/training_step.h"
#include "compiler/export/archive.h"
#include "compiler/export/plan_from_ir.h"
#include "compiler/planner/json.h"
#include "compiler/planner/solve.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/policy/Costs.h"
#include "runtime/plan_generated.h"

namespace memscale::driver {
namespace {

std::string print_ir(mlir::Operation* op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/false));
  return text + "\n";
}

class Compilation {
 public:
  Compilation(const CompileOptions& options, const Hooks& hooks)
      : options_(options), hooks_(hooks), context_(mlir::MLIRContext::Threading::DISABLED), diagnostics_(context_) {}

  Expected<CompileResult> run() {
    using Step = Expected<Success> (Compilation::*)();
    struct Named {
      const char* name;
      Step step;
    };
    static constexpr Named kSteps[] = {
        {"checking", &Compilation::check},
        {"reading the archive", &Compilation::open},
        {"capturing", &Compilation::capture},
        {"building the IR", &Compilation::build_ir},
        {"measuring the step", &Compilation::measure},
        {"planning", &Compilation::plan},
        {"rewriting and verifying", &Compilation::rewrite},
        {"making the plan", &Compilation::lower},
        {"writing the archive", &Compilation::write},
    };
    for (const Named& step : kSteps) {
      if (options_.dry_run && step.step == &Compilation::write) break;
      on_phase(step.name);
      const auto begin = std::chrono::steady_clock::now();
      Expected<Success> done = (this->*step.step)();
      if (!done) return done.error();
      report_.phases.push_back({step.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
      if (emitted_) break;
    }
    unique_warnings();
    return CompileResult{std::move(report_), emitted_.value_or("")};
  }

 private:
  void unique_warnings() {
    std::vector<std::string> unique;
    for (std::string& warning : report_.warnings) {
      if (std::find(unique.begin(), unique.end(), warning) == unique.end()) unique.push_back(std::move(warning));
    }
    report_.warnings = std::move(unique);
  }

  /// What can be known to be wrong before the long work.
  Expected<Success> check() {
    struct Output {
      const char* option;
      const std::string& path;
    };
    const bool writes = !options_.dry_run && options_.emit == Emit::kNothing;
    for (const Output& output : {Output{"--output", writes ? options_.output : kNoPath}, Output{"--report", options_.report},
                                 Output{"--emit-to", options_.emit_to}}) {
      if (output.path.empty()) continue;
      if (Expected<Success> writable = check_writable(output.option, output.path); !writable) return writable;
      std::error_code error;
      if (std::filesystem::equivalent(output.path, options_.input, error)) {
        return Error{Exit::kUsage, std::string(output.option) + ": '" + output.path + "' is the input", "name another file"};
      }
    }
    if (!options_.policy.empty()) {
      std::vector<std::string> known = planner::policies();
      known.insert(known.begin(), {"auto", "save-all"});
      if (std::find(known.begin(), known.end(), options_.policy) == known.end()) {
        return Error{Exit::kUsage, "--policy: unknown policy '" + options_.policy + "'", suggestion(options_.policy, known)};
      }
    }
    Expected<Target> target = find_target(options_.target);
    if (!target) return target.error();
    target_ = std::move(*target);
    report_.target = target_.profile.name;
    report_.device = target_.profile.device;
    report_.target_memory_bytes = target_.profile.device_memory_bytes;
    report_.budget = options_.budget.text;
    report_.optimizer = options_.optimizer.text;
    report_.producer = std::string("memscalec ") + MEMSCALE_VERSION;
    return Success{};
  }

  Expected<Success> open() {
    import::OpenOptions how;
    how.read_weights = !options_.dry_run && options_.emit == Emit::kNothing;  // planning never looks at them
    Expected<std::shared_ptr<import::Model>> model = import::open(options_.input, how);
    if (!model) {
      Error error = model.error();
      if (error.message.find(options_.input) == std::string::npos) error.message = "'" + options_.input + "': " + error.message;
      return error;
    }
    model_ = std::move(*model);
    const import::ModelInfo& info = import::info(*model_);
    report_.model = std::filesystem::path(options_.input).filename().string();
    report_.format = info.format;
    report_.parameters = static_cast<int64_t>(info.parameter_count);
    report_.parameter_bytes = info.parameter_bytes;
    report_.buffer_bytes = info.buffer_bytes;
    report_.warnings = import::warnings(*model_);
    return Success{};
  }

  Expected<Success> capture() {
    capture::Options how;
    how.target = {target_.profile.device, target_.profile.compute_capability};
    how.inputs = options_.shapes;
    how.all_tangents = options_.all_tangents;
    how.deterministic = options_.deterministic;
    how.threads = options_.threads;
    Expected<capture::Graph> graph = capture::capture(*model_, how);
    if (!graph) return graph.error();
    graph_ = std::move(*graph);
    // A machine without the target's device cannot be asked what it is called: the profile knows.
    if (target_.profile.device == "cuda") graph_.guards["device"] = "sm_" + std::to_string(target_.profile.compute_capability);
    report_.forward_calls = static_cast<int64_t>(graph_.backward_begin);
    report_.backward_calls = static_cast<int64_t>(graph_.calls.size() - graph_.backward_begin);
    report_.warnings.insert(report_.warnings.end(), graph_.warnings.begin(), graph_.warnings.end());
    return Success{};
  }

  Expected<Success> build_ir() {
    module_ = ir_from_graph(context_, graph_);
    if (!module_) return internal();
    step_ = *module_->getOps<ir::StepOp>().begin();
    if (options_.emit == Emit::kCaptured) emitted_ = print_ir(*module_);
    return Success{};
  }

  /// Prepares the step for the policy, and finds the budget in bytes.
  Expected<Success> measure() {
    if (!run_passes(passes::buildPreparePipeline)) return internal();
    mlir::FailureOr<passes::CostModel> costs = passes::loadCostModel(step_, target_.path);
    if (mlir::failed(costs)) return Error{Exit::kUsage, diagnostics_.take_errors(), ""};
    planning_options_.costs = std::move(*costs);
    const OptimizerBytes optimizer = optimizer_of(graph_, options_.optimizer, target_.profile);
    planning_options_.static_bytes = optimizer.state;
    report_.optimizer_state_bytes = optimizer.state;
    report_.optimizer_temporary_bytes = optimizer.temporary;
    Expected<TrainingStep> measured = measure_step(step_, planning_options_.costs, optimizer);
    if (!measured) return measured.error();
    training_step_ = std::move(*measured);
    if (options_.emit == Emit::kProblem) emitted_ = planner::write_problem(training_step_.built.problem);
    return Success{};
  }

  int64_t budget_in_bytes() const {
    switch (options_.budget.kind) {
      case Budget::Kind::kBytes:
        return options_.budget.bytes;
      case Budget::Kind::kFraction:
        return static_cast<int64_t>(options_.budget.fraction * static_cast<double>(training_step_.eager_peak_bytes));
      case Budget::Kind::kAuto:
        return target_.profile.device_memory_bytes - target_.profile.reserve_bytes;
      case Budget::Kind::kMin:  // nothing is gained below the optimizer's moment
        return training_step_.optimizer_peak_bytes;
    }
    return 0;
  }

  Expected<Success> plan() {
    planning_options_.budget_bytes = budget_in_bytes();
    planning_options_.policy = options_.policy.empty() ? "auto" : options_.policy;
    planning_options_.search_rounds = options_.search_rounds;
    const bool minimize = options_.budget.kind == Budget::Kind::kMin;
    if (training_step_.optimizer_peak_bytes > planning_options_.budget_bytes) return infeasible();
    bool planned = plan_once();
    if (!planned && minimize && !planning_.infeasible.empty()) {
      // The lowest peak first, then the fastest plan that has it.
      planning_options_.budget_bytes = planner::find_lowest(training_step_.built.problem).peak_bytes;
      planned = plan_once();
      if (!planned) {
        planning_options_.minimize = true;
        planned = plan_once();
      }
    }
    if (!planned) return planning_.infeasible.empty() ? internal() : infeasible();
    report_.budget_bytes = minimize ? 0 : planning_options_.budget_bytes;
    fill_report(planning_, training_step_, report_);
    if (options_.emit == Emit::kPlanned) emitted_ = print_ir(step_);
    if (options_.emit == Emit::kPlan) emitted_ = planner::write_plan(planning_.plan);
    return Success{};
  }

  /// False leaves the reason in planning_, or else in diagnostics_.
  bool plan_once() {
    const bool done = mlir::succeeded(passes::planStep(step_, planning_options_, planning_));
    if (!done && !planning_.infeasible.empty()) diagnostics_.take_errors();
    return done;
  }

  Expected<Success> infeasible() const {
    return explain_infeasible(training_step_, options_.budget, planning_options_.budget_bytes, planning_.infeasible);
  }

  Expected<Success> rewrite() {
    if (options_.emit == Emit::kRewritten) {
      const bool done =
          run_passes([](mlir::OpPassManager& manager) { manager.addNestedPass<ir::StepOp>(passes::createApplyPlan()); });
      if (!done) return internal();
      emitted_ = print_ir(step_);
      return Success{};
    }
    if (!run_passes(passes::buildRewritePipeline)) {
      return Error{Exit::kVerification,
                   "the planned step could not be proven to compute what the captured one does; nothing is written\n  " +
                       diagnostics_.take_errors(),
                   "this is a fault of memscale: please report it; another --policy or --budget may pass"};
    }
    if (options_.emit == Emit::kScheduled) emitted_ = print_ir(step_);
    return Success{};
  }

  Expected<Success> lower() {
    Expected<fb::PlanT> plan = exporter::plan_from_ir(step_);
    if (!plan) return plan.error();
    plan_ = std::move(*plan);
    plan_.producer = report_.producer;
    plan_.torch_version = graph_.guards["torch"];
    plan_.target_profile = target_.profile.name;
    plan_.predicted_peak_bytes = report_.planned_peak_bytes;
    plan_.predicted_eager_peak_bytes = report_.eager_peak_bytes;
    plan_.predicted_time_us = report_.planned_time_us;
    unique_warnings();
    plan_.report = report::to_json(report_, /*with_times=*/false);
    return Success{};
  }

  Expected<Success> write() {
    return exporter::write_archive(*model_, plan_, options_.output, [&](const std::string& path) -> Expected<Success> {
      if (!hooks_.check_archive) return Success{};
      on_phase("replaying a step");
      Expected<std::string> said = hooks_.check_archive(path, plan_);
      if (!said) return said.error();
      report_.replay = std::move(*said);
      return Success{};
    });
  }

  void on_phase(const std::string& name) const {
    if (hooks_.on_phase) hooks_.on_phase(name);
  }

  template <class Build>
  bool run_passes(Build build) {
    mlir::PassManager manager(&context_);
    build(manager);
    return mlir::succeeded(manager.run(*module_));
  }

  Error internal() { return {Exit::kInternal, diagnostics_.take_errors(), ""}; }

  inline static const std::string kNoPath;
  const CompileOptions& options_;
  const Hooks& hooks_;
  report::Report report_;
  Target target_;
  std::shared_ptr<import::Model> model_;
  capture::Graph graph_;
  mlir::MLIRContext context_;
  Diagnostics diagnostics_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  ir::StepOp step_;
  passes::PlanningOptions planning_options_;
  TrainingStep training_step_;
  passes::PlanningResult planning_;
  fb::PlanT plan_;
  std::optional<std::string> emitted_;
};

}  // namespace

Expected<CompileResult> compile(const CompileOptions& options, const Hooks& hooks) {
  try {
    return Compilation(options, hooks).run();
  } catch (const std::bad_alloc&) {
    return Error{Exit::kCompile, "there is not enough memory on this machine to compile the model",
                 "a structure-only archive needs no weights in memory"};
  } catch (const std::exception& e) {
    return Error{Exit::kInternal, std::string("unexpected exception: ") + e.what(), ""};
  }
}

}  // namespace memscale::driver

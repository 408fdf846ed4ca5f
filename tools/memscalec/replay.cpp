// Replay of planned archives. torch throws; nothing leaves this file as an exception.
#include "tools/memscalec/replay.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <fstream>

#include "compiler/driver/bytes.h"
#include "runtime/include/memscale/memscale.h"
#include "tools/memscalec/compare.h"
#include "tools/memscalec/original_graph.h"
#include "tools/memscalec/random_inputs.h"

namespace memscale::cli {
namespace {

constexpr double kLearningRate = 1e-3;

/// Bytes that this machine can still give out; -1 if it does not say.
int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    int64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
    std::getline(file, unit);
  }
  return -1;
}

struct Different {
  std::string what;
};

struct State {
  const fb::ArgumentT* argument;
  at::Tensor planned, original;
};

/// Puts the generator and the original's buffers back when it goes.
class Untouched {
 public:
  explicit Untouched(const std::vector<State>& state) : state_(state), generator_(at::detail::getDefaultCPUGenerator()) {
    for (const State& s : state) {
      if (s.argument->role == fb::Role::Buffer) copies_.push_back(s.original.detach().clone());
    }
    random_ = generator_.get_state();
  }
  ~Untouched() {
    const at::NoGradGuard no_grad;
    size_t next = 0;
    for (const State& s : state_) {
      if (s.argument->role == fb::Role::Buffer) s.original.detach().copy_(copies_[next++]);
    }
    generator_.set_state(random_);
  }

 private:
  const std::vector<State>& state_;
  at::Generator generator_;
  std::vector<at::Tensor> copies_;
  at::Tensor random_;
};

/// The settings of the training process that the plan was made for and that this process can take on.
void adopt_settings(const fb::PlanT& plan) {
  for (const auto& guard : plan.guards) {
    if (guard->name == "deterministic") at::globalContext().setDeterministicAlgorithms(guard->value == "1", /*warn_only=*/false);
    if (guard->name == "threads") at::set_num_threads(std::stoi(guard->value));
  }
}

class Replay {
 public:
  Replay(const ReplayOptions& options, const PlanFile& file, OriginalGraph original)
      : options_(options),
        file_(file),
        plan_(file.plan),
        original_(std::move(original)),
        planned_(load(options.planned, loading())) {}

  ReplayResult run() {
    match_state();
    ReplayResult result;
    const auto accepts = [this](const std::vector<at::Tensor>& inputs) { return try_inputs(inputs); };
    RandomInputs random(plan_, options_.seed, accepts);
    if (!random.accepted()) throw std::runtime_error(failure_);
    for (int step = 0; step < options_.steps; ++step) run_step(step, random.next());
    result.inputs = random.describe();
    result.finite = random.finite();
    result.outputs = plan_.outputs.size();
    result.gradients = gradients_;
    for (const State& s : state_) (s.argument->role == fb::Role::Buffer ? result.buffers : result.parameters) += 1;
    result.statistics = planned_.memory_stats();
    return result;
  }

 private:
  LoadOptions loading() const {
    LoadOptions loading;
    loading.load_weights = file_.has_weights;
    return loading;
  }

  /// Pairs the tensors of both, by name; equal values to begin with. Weights that the archive lacks are made up, the same for
  /// both.
  void match_state() {
    const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
    for (const auto& argument : plan_.arguments) {
      if (argument->role != fb::Role::Parameter && argument->role != fb::Role::Buffer) continue;
      State s{argument.get(), {}, original_.state(*argument)};
      if (!s.original.defined()) throw Different{"the original graph has no tensor '" + argument->name + "'"};
      if (s.original.is_meta()) {
        const bool floating = at::isFloatingType(s.original.scalar_type());
        at::Tensor made = at::empty_strided(s.original.sizes(), s.original.strides(), s.original.options().device(at::kCPU));
        if (floating) {
          made.normal_(0, 0.02, generator);
        } else {
          made.zero_();
        }
        planned_.load(argument->name, made);
        made.requires_grad_(argument->requires_grad);
        original_.set_state(*argument, made);
        s.original = made;
      }
      state_.push_back(std::move(s));
    }
    size_t parameter = 0, buffer = 0;
    const auto parameters = planned_.parameters(), buffers = planned_.buffers();
    for (State& s : state_) {
      s.planned = s.argument->role == fb::Role::Parameter ? parameters.at(parameter++) : buffers.at(buffer++);
      require_equal("before the first step: " + s.argument->name, s.planned, s.original);
    }
  }

  int try_inputs(const std::vector<at::Tensor>& inputs) {
    const Untouched untouched(state_);
    const at::NoGradGuard no_grad;
    try {
      int state = 2;
      for (const at::Tensor& output : original_.forward(inputs)) {
        if (at::isFloatingType(output.scalar_type()) && !at::isfinite(output).all().item<bool>()) state = 1;
      }
      return state;
    } catch (const c10::Error& e) {
      failure_ = e.what_without_backtrace();
    } catch (const std::exception& e) {
      failure_ = e.what();
    }
    return 0;
  }

  void run_step(int step, const std::vector<at::Tensor>& inputs) {
    const std::string where = "step " + std::to_string(step + 1) + ": ";
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const uint64_t seed = options_.seed + static_cast<uint64_t>(step) + 1;
    const std::vector<at::Tensor> for_planned = copies(inputs), for_original = copies(inputs);

    generator.set_current_seed(seed);
    const std::vector<c10::IValue> values(for_planned.begin(), for_planned.end());
    if (const std::string why = planned_.guard_failure(values); !why.empty())
      throw std::runtime_error("the plan does not apply here: " + why);
    const std::vector<at::Tensor> planned = planned_.forward(values);
    backward(planned);
    const at::Tensor planned_random = generator.get_state();

    generator.set_current_seed(seed);
    const std::vector<at::Tensor> original = original_.forward(for_original);
    if (planned.size() != original.size()) {
      throw Different{where + "the plan returns " + std::to_string(planned.size()) + " outputs, the original " +
                      std::to_string(original.size())};
    }
    backward(original);

    for (size_t i = 0; i < planned.size(); ++i) require_equal(where + "output " + std::to_string(i), planned[i], original[i]);
    gradients_ = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      require_equal(where + "input " + std::to_string(i) + " after the step", for_planned[i], for_original[i]);
      require_gradients_equal(where + "gradient of input " + std::to_string(i), for_planned[i], for_original[i]);
    }
    for (const State& s : state_) {
      if (s.argument->role == fb::Role::Buffer) {
        require_equal(where + "buffer " + s.argument->name, s.planned, s.original);
      } else {
        require_gradients_equal(where + "gradient of " + s.argument->name, s.planned, s.original);
      }
    }
    require_equal(where + "state of the random generator", planned_random, generator.get_state());
    update();
  }

  std::vector<at::Tensor> copies(const std::vector<at::Tensor>& inputs) const {
    std::vector<at::Tensor> result;
    size_t next = 0;
    for (const auto& argument : plan_.arguments) {
      if (argument->role != fb::Role::Input) continue;
      at::Tensor copy =
          at::empty_strided(inputs[next].sizes(), inputs[next].strides(), inputs[next].options()).copy_(inputs[next]);
      result.push_back(copy.requires_grad_(argument->requires_grad));
      ++next;
    }
    return result;
  }

  /// A gradient of one into a scalar, of a fixed pseudo-random tensor into anything else.
  void backward(const std::vector<at::Tensor>& outputs) const {
    std::vector<at::Tensor> roots, tangents;
    for (size_t i = 0; i < outputs.size() && i < plan_.outputs.size(); ++i) {
      if (plan_.outputs[i]->tangent < 0) continue;
      const at::Tensor& output = outputs[i];
      const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options_.seed + i);
      roots.push_back(output);
      tangents.push_back(
          output.numel() == 1
              ? at::ones_like(output.detach())
              : at::randn(output.sizes(), generator, at::TensorOptions().dtype(at::kFloat)).to(output.scalar_type()));
    }
    if (!roots.empty()) torch::autograd::backward(roots, tangents);
  }

  void update() {
    const at::NoGradGuard no_grad;
    for (const State& s : state_) {
      for (const at::Tensor& tensor : {s.planned, s.original}) {
        if (!tensor.requires_grad() || !tensor.grad().defined()) continue;
        tensor.detach().sub_(tensor.grad(), kLearningRate);
        tensor.mutable_grad().reset();
      }
    }
  }

  static void require_equal(const std::string& what, const at::Tensor& planned, const at::Tensor& original) {
    const std::string text = difference(planned, original);
    if (!text.empty()) throw Different{what + ": " + text};
  }

  void require_gradients_equal(const std::string& what, const at::Tensor& planned, const at::Tensor& original) {
    require_equal(what, planned.grad(), original.grad());
    if (planned.grad().defined()) ++gradients_;
  }

  const ReplayOptions& options_;
  const PlanFile& file_;
  const fb::PlanT& plan_;
  OriginalGraph original_;
  Module planned_;
  std::vector<State> state_;
  size_t gradients_ = 0;
  std::string failure_ = "the original graph was not run";
};

}  // namespace

Expected<ReplayResult> replay(const ReplayOptions& options, const PlanFile& file) {
  // Both sides keep their weights and gradients; they step one after the other.
  const int64_t needed = file.plan.predicted_eager_peak_bytes + file.plan.predicted_peak_bytes, available = available_bytes();
  if (available >= 0 && needed > available) {
    return Error{Exit::kCompile,
                 "the replay needs about " + driver::print_bytes(needed) + " of memory, " + driver::print_bytes(available) +
                     " are available",
                 "use a larger machine, or check the plan's structure alone with --steps 0"};
  }
  try {
    Expected<OriginalGraph> original = OriginalGraph::open(options.planned, options.against, file.plan);
    if (!original) return original.error();
    adopt_settings(file.plan);
    return Replay(options, file, std::move(*original)).run();
  } catch (const Different& d) {
    return Error{Exit::kVerification, d.what,
                 options.against.empty() ? "do not train with this archive, and please report it"
                                         : "was the planned archive compiled from '" + options.against + "'?"};
  } catch (const c10::Error& e) {
    return Error{Exit::kCompile, std::string("the replay failed: ") + e.what_without_backtrace(), ""};
  } catch (const std::exception& e) {
    return Error{Exit::kCompile, std::string("the replay failed: ") + e.what(), ""};
  }
}

}  // namespace memscale::cli

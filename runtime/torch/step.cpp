// The backward of one call: tangents in, segments one by one, gradients out.
// Destroys the saved registers as segments finish, unless the graph is retained.
#include "runtime/torch/step.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>

namespace memscale::runtime {
namespace {

void raise(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t present = maximum.load();
  while (value > present && !maximum.compare_exchange_weak(present, value)) {
  }
}

}  // namespace

void record_peak(Statistics& statistics, const CallState& state, int64_t static_bytes) {
  if (!state.meter) return;
  const int64_t region = state.meter->peak_bytes();
  raise(statistics.region_peak_bytes, region);
  if (region + static_bytes > statistics.peak_bytes.load()) statistics.static_bytes = static_bytes;
  raise(statistics.peak_bytes, region + static_bytes);
}

void Step::watch(VersionCheck::Kind kind, int32_t index, const at::Tensor& tensor) {
  if (tensor.is_inference()) return;
  const c10::VariableVersion counter = tensor.unsafeGetTensorImpl()->version_counter();
  (kind == VersionCheck::kArgument ? arguments_ : outputs_).emplace_back(index, Watched{counter, counter.current_version()});
}

void Step::check_versions(const std::vector<VersionCheck>& checks) const {
  for (const VersionCheck& check : checks) {
    const bool argument = check.kind == VersionCheck::kArgument;
    for (const auto& [index, watched] : argument ? arguments_ : outputs_) {
      if (index != check.index) continue;
      TORCH_CHECK(watched.counter.current_version() == watched.version,
                  "memscale: ", argument ? "'" + plan_->plan().arguments[index]->name + "'" : "output " + std::to_string(index),
                  " was changed in place between forward and backward, but backward reads it: it is at version ",
                  watched.counter.current_version(), ", expected version ", watched.version,
                  ". Change it after backward, or change a clone of it.");
    }
  }
}

void Step::begin(std::vector<at::Tensor> tangents, bool keep, int task) {
  TORCH_CHECK(saved_.has_value(),
              "memscale: backward ran a second time through one planned step, whose saved values the first backward has freed. "
              "Call the first one with retain_graph=True.");
  TORCH_CHECK(!plan_->program().recomputes || numeric_settings() == forward_settings_,
              "memscale: a numeric setting of torch (matmul precision, TF32, cuDNN or deterministic mode, reduced precision) was "
              "changed between "
              "forward and backward, but backward recomputes parts of forward. Change it between steps.");
  if (keep) {
    active_ = *saved_;
    ++plan_->statistics().retained_backward_runs;
  } else {
    active_ = std::move(saved_);
    saved_.reset();
  }
  active_task_ = task;
  const fb::PlanT& plan = plan_->plan();
  MeterScope scope(active_->meter);
  size_t slot = 0;
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    const fb::OutputT& output = *plan.outputs[k];
    if (output.tangent == -1) continue;
    at::Tensor tangent = std::move(tangents[slot++]);
    if (!plan_->program().tangent_used[k]) continue;
    const auto argument = std::find_if(plan.arguments.begin(), plan.arguments.end(),
                                       [&](const auto& a) { return a->role == fb::Role::Tangent && a->reg == output.tangent; });
    const fb::TensorMetaT& meta = *(*argument)->meta;
    const at::ScalarType dtype = scalar_type_of(meta.dtype);
    if (!tangent.defined()) {
      const c10::Device device = (*argument)->place == fb::Place::Target ? active_->target : c10::Device(c10::DeviceType::CPU);
      tangent = at::empty_strided(meta.sizes, meta.strides, at::TensorOptions().dtype(dtype).device(device)).zero_();
      ++plan_->statistics().materialized_tangents;
    } else if (!same_layout(tangent, meta, dtype, /*with_offset=*/false)) {
      TORCH_CHECK(tangent.sizes().equals(meta.sizes), "memscale: the gradient of output ", k, " is ", describe(tangent),
                  ", the plan expects ", describe(meta));
      tangent = at::empty_strided(meta.sizes, meta.strides, tangent.options().dtype(dtype)).copy_(tangent);
      ++plan_->statistics().restrided_tangents;
    }
    active_->registers[output.tangent] = std::move(tangent);
  }
}

at::Tensor Step::hand_over(const Segment::Gradient& gradient) {
  if (gradient.reg == -1) return {};
  at::Tensor& reg = active_->registers[gradient.reg];
  return gradient.last_use ? std::move(reg) : reg;
}

std::vector<at::Tensor> Step::run_segment(size_t index, std::vector<at::Tensor> tangents, bool keep) {
  std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(!c10::GradMode::is_enabled(),
              "memscale: backward was called with create_graph=True, but a plan's gradients cannot be differentiated again. Run "
              "the original model for higher derivatives.");
  const int task = torch::autograd::get_current_graph_task_id();
  const Program& program = plan_->program();
  const Segment& segment = program.segments[index];
  // An exception in here leaves nothing half done behind: the values of this backward are dropped.
  struct DropOnError {
    std::optional<CallState>& state;
    bool armed = true;
    ~DropOnError() {
      if (armed) state.reset();
    }
  } guard{active_};
  check_versions(segment.checks);
  check_versions(always_check);
  if (index == 0) begin(std::move(tangents), keep, task);
  TORCH_CHECK(active_.has_value() && active_task_ == task,
              "memscale: two backward passes ran through one planned step at the same time; run them one after the other.");
  MeterScope scope(active_->meter);
  const bool check = !plan_->backward_checked.load(std::memory_order_relaxed);
  run_instructions(plan_->plan(), program, program.backward, segment.begin, segment.end, *active_, {check, false});

  std::vector<at::Tensor> gradients;
  gradients.reserve(segment.gradients.size() + 1);
  for (const auto& gradient : segment.gradients) gradients.push_back(hand_over(gradient));
  for (int32_t reg : segment.frees) active_->registers[reg].reset();
  const bool last = index + 1 == program.segments.size();
  CallState* state = &*active_;
  if (last) std::fill(state->registers.begin(), state->registers.end(), at::Tensor());
  for (size_t g = 0; g < gradients.size(); ++g) {
    at::Tensor& gradient = gradients[g];
    // AccumulateGrad takes a gradient without a copy if nobody else holds the tensor. It cannot see that another tensor shares
    // its memory: an argument, a tangent, another gradient. Those are copied here.
    if (!gradient.defined() || gradient.use_count() > 1 || !argument_is_leaf[segment.gradients[g].argument] ||
        gradient.layout() != at::kStrided || gradient.unsafeGetTensorImpl()->unsafe_storage().use_count() == 1)
      continue;
    gradient = gradient.clone();
    ++plan_->statistics().cloned_gradients;
  }
  guard.armed = false;
  if (last) {
    plan_->backward_checked = true;
    ++plan_->statistics().backward_runs;
    record_peak(plan_->statistics(), *state, static_bytes_);
    active_.reset();
  }
  return gradients;
}

}  // namespace memscale::runtime

// The forward of a call and the autograd nodes of its backward.
// Needs the arguments in plan order; destroys every intermediate value that backward does not read.
#include "runtime/torch/autograd.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/torch/step.h"

namespace memscale::runtime {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

/// One segment of the plan's backward. Its edges are those of its gradients' receivers, then the token edge to the next segment.
class SegmentNode : public Node {
 public:
  SegmentNode(std::shared_ptr<Step> step, size_t index, at::Tensor token)
      : step_(std::move(step)), index_(index), token_(std::move(token)) {}

  variable_list apply(variable_list&& inputs) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool keep = !releasing_;
    releasing_ = false;
    return at_border([&] {
      variable_list gradients = step_->run_segment(index_, index_ == 0 ? std::move(inputs) : variable_list(), keep);
      if (gradients.size() < num_outputs()) gradients.push_back(token_);
      return gradients;
    });
  }
  // The engine announces here that it will not keep the graph.
  void will_release_variables() override { releasing_ = true; }
  std::string name() const override { return "MemscaleBackward[" + step_->plan().program().segments[index_].name + "]"; }

 private:
  std::shared_ptr<Step> step_;
  size_t index_;
  at::Tensor token_;
  bool releasing_ = false;
};

/// The grad_fn of an output that requires a gradient in the original but that the plan does not differentiate.
class NotPlannedNode : public Node {
 public:
  explicit NotPlannedNode(std::string message) : message_(std::move(message)) {}
  variable_list apply(variable_list&&) override { TORCH_CHECK(false, message_); }
  std::string name() const override { return "MemscaleNotPlannedBackward"; }

 private:
  std::string message_;
};

std::string not_planned_message(const fb::PlanT& plan, size_t output) {
  std::string planned;
  for (size_t k = 0; k < plan.outputs.size(); ++k)
    if (plan.outputs[k]->tangent != -1) planned += (planned.empty() ? "" : ", ") + std::to_string(k);
  return "memscale: backward reached output " + std::to_string(output) + ", but this plan differentiates only output " +
         (planned.empty() ? "none" : planned) + "; compile with --all-tangents.";
}

/// The same memory and version counter as another tensor, without its place in the autograd graph.
at::Tensor detached_alias(const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  if (tensor.is_inference()) return at::Tensor(impl->shallow_copy_and_detach(0, false));
  return at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(), false));
}

const void* storage_of(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(); }

int64_t storage_bytes(std::initializer_list<at::TensorList> lists, at::TensorList parameters) {
  std::vector<std::pair<const void*, int64_t>> storages;
  const auto add = [&storages](const at::Tensor& t) {
    if (t.defined() && t.has_storage()) storages.emplace_back(storage_of(t), t.storage().nbytes());
  };
  for (at::TensorList list : lists)
    for (const at::Tensor& t : list) add(t);
  for (const at::Tensor& t : parameters)
    if (t.is_leaf()) add(t.grad());
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  int64_t bytes = 0;
  for (const auto& entry : storages) bytes += entry.second;
  return bytes;
}

class Forward {
 public:
  Forward(const c10::intrusive_ptr<PlanObject>& plan, at::TensorList parameters, at::TensorList buffers, at::TensorList inputs)
      : object_(plan), plan_(plan->plan()), program_(plan->program()), record_(at::GradMode::is_enabled()) {
    const std::string mismatch = object_->argument_mismatch(parameters, buffers, inputs);
    TORCH_CHECK(mismatch.empty(), "memscale: ", mismatch,
                ". Compile the model for these arguments, or run the original graph (memscale::guards_ok tells beforehand).");
    differentiate_ = record_ && !plan_.segments.empty();
    given_.resize(plan_.arguments.size());
    state_.registers.resize(plan_.register_count);
    state_.slots.resize(plan_.rng_slot_count);
    state_.target = target_ = object_->target_device(parameters, inputs);
    if (plan_.target == "cpu") {
      state_.meter = std::make_shared<Meter>();
      static_bytes_ = storage_bytes({parameters, buffers, inputs}, parameters);
    }
    place(object_->parameters(), parameters);
    place(object_->buffers(), buffers);
    place(object_->inputs(), inputs);
    place(object_->constants(), object_->constant_tensors(state_.target));
  }

  std::vector<at::Tensor> run() {
    Statistics& statistics = object_->statistics();
    {
      MeterScope scope(state_.meter);
      const bool check = !object_->forward_checked.load(std::memory_order_relaxed);
      run_instructions(plan_, program_, program_.forward, 0, program_.forward.size(), state_, {check, !differentiate_});
      object_->forward_checked = true;
      write_back();
    }
    std::vector<at::Tensor> results = make_outputs();
    ++statistics.forward_runs;
    if (!differentiate_) {
      ++statistics.forward_only_runs;
      record_peak(statistics, state_, static_bytes_);
      if (record_) attach(results, nullptr);
      return results;
    }
    const std::shared_ptr<Step> step = save(results);
    attach(results, step);
    return results;
  }

 private:
  void place(const std::vector<int32_t>& indices, at::TensorList tensors) {
    for (size_t i = 0; i < indices.size(); ++i) {
      given_[indices[i]] = tensors[i];
      state_.registers[plan_.arguments[indices[i]]->reg] = tensors[i];
    }
  }

  void write_back() {
    if (plan_.writebacks.empty()) return;
    at::NoGradGuard no_grad;
    if (differentiate_)
      for (int32_t reg : program_.copy_before_writeback) state_.registers[reg] = state_.registers[reg].clone();
    std::vector<at::Tensor> values;
    for (size_t i = 0; i < plan_.writebacks.size(); ++i) {
      const at::Tensor& value = state_.registers[plan_.writebacks[i]->reg];
      values.push_back(program_.writeback_reads_written[i] ? value.clone() : value);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      at::Tensor& target = given_[plan_.writebacks[i]->argument];
      if (!target.is_same(values[i])) target.copy_(values[i]);
    }
  }

  /// What the caller gets: the argument itself, a view of it, the same tensor as an earlier output, or the register's tensor.
  std::vector<at::Tensor> make_outputs() {
    std::vector<at::Tensor> results;
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const at::Tensor& value = state_.registers[plan_.outputs[k]->reg];
      const int32_t argument = program_.output_argument[k];
      const int32_t alias = program_.output_alias[k];
      if (argument >= 0 && value.is_same(given_[argument])) {
        results.push_back(value);
      } else if (alias < static_cast<int32_t>(k) && value.is_same(state_.registers[plan_.outputs[alias]->reg])) {
        results.push_back(results[alias]);
      } else if (argument >= 0 && value.is_alias_of(given_[argument])) {
        const at::Tensor& base = given_[argument];
        if (value.scalar_type() == base.scalar_type() && !(record_ && base.requires_grad())) {
          results.push_back(base.as_strided(value.sizes(), value.strides(), value.storage_offset()));
        } else {
          results.push_back(detached_alias(value));
          share_version(results.back(), base);
        }
      } else {
        results.push_back(value);
        if (alias < static_cast<int32_t>(k)) share_version(value, results[alias]);
      }
    }
    return results;
  }

  static void share_version(const at::Tensor& tensor, const at::Tensor& base) {
    if (!tensor.is_inference() && !base.is_inference())
      tensor.unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  }

  /// Keeps the registers that backward reads and drops the others.
  std::shared_ptr<Step> save(const std::vector<at::Tensor>& results) {
    std::vector<at::Tensor> kept(plan_.register_count);
    std::unordered_map<const void*, int32_t> outputs;  // by storage
    for (size_t k = results.size(); k-- > 0;)
      if (results[k].defined() && results[k].has_storage()) outputs[storage_of(results[k])] = static_cast<int32_t>(k);
    std::set<int32_t> shared;
    for (int32_t reg : program_.live_into_backward) {
      at::Tensor& value = state_.registers[reg];
      bool in_graph = value.defined() && value.requires_grad() && !value.is_leaf();
      if (value.defined() && value.has_storage()) {
        const auto output = outputs.find(storage_of(value));
        if (output != outputs.end()) {
          in_graph = true;
          // Some kernels return their input without saying so in their schema.
          if (!program_.output_escapes[output->second] && program_.output_argument[output->second] < 0)
            shared.insert(output->second);
        }
      }
      // A saved tensor with a history would keep this very graph alive in a cycle.
      kept[reg] = in_graph ? detached_alias(value) : value;
    }
    state_.registers = std::move(kept);
    auto step = std::make_shared<Step>(object_, std::move(state_), static_bytes_);
    std::vector<bool> watched_arguments(given_.size()), watched_outputs(results.size());
    for (const Segment& segment : program_.segments)
      for (const VersionCheck& check : segment.checks) {
        const bool argument = check.kind == VersionCheck::kArgument;
        std::vector<bool>& watched = argument ? watched_arguments : watched_outputs;
        if (watched[check.index]) continue;
        watched[check.index] = true;
        step->watch(check.kind, check.index, argument ? given_[check.index] : results[check.index]);
      }
    for (int32_t k : shared) {
      if (!watched_outputs[k]) step->watch(VersionCheck::kOutput, k, results[k]);
      step->always_check.push_back({VersionCheck::kOutput, k});
    }
    for (const at::Tensor& t : given_) step->argument_is_leaf.push_back(t.defined() && t.is_leaf());
    return step;
  }

  /// Builds the nodes, last segment first: the engine prefers nodes that were made later.
  std::shared_ptr<Node> make_chain(const std::shared_ptr<Step>& step) {
    const at::Tensor token = at::empty({0}, at::TensorOptions().dtype(at::kFloat).device(target_));
    std::shared_ptr<Node> next;
    for (size_t s = program_.segments.size(); s-- > 0;) {
      std::shared_ptr<Node> node(new SegmentNode(step, s, token), torch::autograd::deleteNode);
      for (const auto& gradient : program_.segments[s].gradients) {
        const at::Tensor& receiver = given_[gradient.argument];
        node->add_next_edge(receiver.requires_grad() ? torch::autograd::impl::gradient_edge(receiver) : Edge());
      }
      if (next) node->add_next_edge(Edge(next, 0));
      if (s > 0) node->add_input_metadata(token);
      next = std::move(node);
    }
    return next;
  }

  void attach(std::vector<at::Tensor>& results, const std::shared_ptr<Step>& step) {
    const std::shared_ptr<Node> first = step ? make_chain(step) : nullptr;
    for (size_t k = 0; k < results.size(); ++k) {
      const fb::OutputT& output = *plan_.outputs[k];
      if (!output.requires_grad) continue;
      const bool planned = output.tangent != -1 && first != nullptr;
      // An argument that is returned as it is, or a second mention of an output, has its history already.
      if (results[k].requires_grad()) {
        if (planned) first->add_input_metadata(Node::undefined_input());
        continue;
      }
      if (planned) {
        const uint32_t slot = first->add_input_metadata(results[k]);
        torch::autograd::impl::set_gradient_edge(results[k], Edge(first, slot));
      } else {
        std::shared_ptr<Node> node(new NotPlannedNode(not_planned_message(plan_, k)), torch::autograd::deleteNode);
        node->add_input_metadata(results[k]);
        torch::autograd::impl::set_gradient_edge(results[k], Edge(node, 0));
      }
    }
  }

  c10::intrusive_ptr<PlanObject> object_;
  const fb::PlanT& plan_;
  const Program& program_;
  bool record_;
  bool differentiate_ = false;
  std::vector<at::Tensor> given_;  // by argument
  CallState state_;
  int64_t static_bytes_ = 0;
  c10::Device target_{c10::DeviceType::CPU};
};

}  // namespace

std::vector<at::Tensor> run_plan(const c10::intrusive_ptr<PlanObject>& plan, at::TensorList parameters, at::TensorList buffers,
                                 at::TensorList inputs) {
  return at_border([&] { return Forward(plan, parameters, buffers, inputs).run(); });
}

}  // namespace memscale::runtime

// Orchestrates a capture: twins of the module's tensors, forward under the scope, backward by the autograd engine, clean-up.
#include "compiler/capture/capture.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <set>

#include "compiler/capture/accumulation.h"
#include "compiler/capture/dead_calls.h"
#include "compiler/capture/dtype_names.h"
#include "compiler/capture/graph_runner.h"
#include "compiler/capture/identity_views.h"
#include "compiler/capture/inputs.h"
#include "compiler/capture/structure.h"
#include "compiler/capture/workspace_probe.h"
#include "compiler/import/model_torch.h"
#include "runtime/core/guards.h"

namespace memscale::capture {
namespace {

namespace functional = at::functionalization::impl;

at::Tensor meta_like(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype) {
  OutsideCapture outside;
  return at::empty_strided(sizes, strides, at::TensorOptions().device(c10::kMeta).dtype(dtype));
}

at::Tensor inner(const at::Tensor& wrapper) {
  if (!functional::isFunctionalTensor(wrapper)) return wrapper;
  functional::sync(wrapper);
  return functional::from_functional_tensor(wrapper);
}

/// The settings of the process that will train, while the graph is captured.
class ProcessSettings {
 public:
  explicit ProcessSettings(const Options& options)
      : deterministic_(at::globalContext().deterministicAlgorithms()),
        warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        threads_(at::get_num_threads()) {
    at::globalContext().setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
    if (options.threads > 0) at::set_num_threads(options.threads);
  }
  ~ProcessSettings() {
    at::globalContext().setDeterministicAlgorithms(deterministic_, warn_only_);
    if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  }

 private:
  bool deterministic_, warn_only_;
  int threads_;
};

struct Twin {
  at::Tensor wrapper;
  size_t argument;  // index into Graph::arguments
};

class Capture {
 public:
  Capture(const import::Model& model, const Options& options) : model_(model), options_(options), recorder_(options.target) {}

  Expected<Graph> run() {
    const ProcessSettings settings(options_);
    Error error;
    try {
      record();
      check_missing();
      finish();
      return std::move(recorder_.graph());
    } catch (const CaptureFault& fault) {
      error = {fault.code, fault.what(), fault.help};
    } catch (const std::exception& fault) {
      error = model_error(fault);
    }
    try {
      check_missing();  // after a guessed result other errors mean nothing
    } catch (const CaptureFault& fault) {
      error = {fault.code, fault.what(), fault.help};
    }
    return error;
  }

 private:
  void record() {
    make_state();
    const SettledInputs settled = settle_inputs(model_, options_.inputs);
    recorder_.graph().input_structure = settled.structure;
    recorder_.graph().warnings = model_.warnings;
    std::vector<at::Tensor> inputs = make_inputs(settled.specs);
    {
      CaptureScope scope(recorder_);
      const at::AutoGradMode grad(true);
      forward(inputs);
      backward();
    }
  }

  Error model_error(const std::exception& fault) const {
    const auto* torch_error = dynamic_cast<const c10::Error*>(&fault);
    const Location& location = recorder_.location();
    std::string at;
    if (!location.file.empty()) at = location.file + ":" + std::to_string(location.line) + ": ";
    if (!location.module_path.empty()) at += "in " + location.module_path + ": ";
    return {
        Exit::kCompile,
        at + "the model cannot be run on these inputs: " + (torch_error ? torch_error->what_without_backtrace() : fault.what()),
        "check --shape against what the model expects"};
  }

  at::Tensor add_twin(const at::Tensor& meta, Argument argument) {
    const bool requires_grad = argument.requires_grad;
    recorder_.add_argument(meta, std::move(argument));
    at::Tensor wrapper = functional::to_functional_tensor(meta);
    wrapper.set_requires_grad(requires_grad);
    twins_.push_back({wrapper, recorder_.graph().arguments.size() - 1});
    return wrapper;
  }

  void make_state() {
    for (const import::StateTensor& state : model_.state) {
      Argument argument;
      argument.role = state.is_parameter ? Role::kParameter : Role::kBuffer;
      argument.name = state.name;
      argument.aliases = state.aliases;
      argument.requires_grad = state.requires_grad;
      argument.persistent = state.persistent;
      const at::Tensor& tensor = state.tensor;
      state_twins_[tensor.unsafeGetTensorImpl()] =
          add_twin(meta_like(tensor.sizes(), tensor.strides(), tensor.scalar_type()), std::move(argument));
    }
  }

  std::vector<at::Tensor> make_inputs(const std::vector<InputSpec>& specs) {
    std::vector<at::Tensor> inputs;
    for (const InputSpec& spec : specs) {
      Argument argument;
      argument.role = Role::kInput;
      argument.name = spec.name;
      argument.requires_grad = spec.requires_grad;
      const c10::ScalarType dtype = *dtype_from_name(spec.dtype);
      if (spec.requires_grad && !c10::isFloatingType(dtype) && !c10::isComplexType(dtype))
        throw CaptureFault(Exit::kUsage, "input " + spec.name + " of dtype " + spec.dtype + " cannot require grad");
      inputs.push_back(add_twin(at::empty(spec.sizes, at::TensorOptions().device(c10::kMeta).dtype(dtype)), std::move(argument)));
    }
    return inputs;
  }

  void forward(const std::vector<at::Tensor>& inputs) {
    GraphRunner runner(recorder_, model_.module, state_twins_);
    const bool flat = model_.info.format == "torch.export";  // its ScriptModule takes the flat user inputs
    const c10::IValue result = runner.run(flat ? std::vector<c10::IValue>(inputs.begin(), inputs.end())
                                               : build_inputs(recorder_.graph().input_structure, inputs));
    locations_ = runner.sequence_locations();
    std::vector<at::Tensor> outputs;
    const std::string structure = flatten_outputs(result, outputs);
    recorder_.graph().output_structure = model_.output_structure.empty() ? structure : model_.output_structure;
    for (const at::Tensor& tensor : outputs) {
      Output output;
      output.value = recorder_.value_of(inner(tensor));
      output.requires_grad = tensor.requires_grad();
      recorder_.graph().outputs.push_back(output);
      outputs_.push_back(tensor);
    }
    for (const Twin& twin : twins_) {
      const Argument& argument = recorder_.graph().arguments[twin.argument];
      const ValueId now = recorder_.value_of(inner(twin.wrapper));
      if (now == argument.value) continue;
      if (argument.role == Role::kParameter)
        throw CaptureFault(Exit::kUnsupported, "forward changes parameter " + argument.name + " in place",
                           "update parameters in the optimizer");
      if (argument.requires_grad)
        throw CaptureFault(Exit::kUnsupported, "forward changes input " + argument.name + " in place, and it requires grad");
      recorder_.graph().writebacks.push_back({argument.value, now});
    }
  }

  /// Which outputs take an incoming gradient: the loss alone where output 0 is one, else every differentiable output.
  std::vector<size_t> differentiated() const {
    const bool loss_first =
        !outputs_.empty() && outputs_[0].numel() == 1 && outputs_[0].dim() <= 1 && outputs_[0].requires_grad();
    std::vector<size_t> list;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].requires_grad() && (i == 0 || !loss_first || options_.all_tangents)) list.push_back(i);
    return list;
  }

  void backward() {
    recorder_.begin_backward(locations_);
    const std::vector<size_t> list = differentiated();
    std::vector<at::Tensor> wanted;
    std::vector<ValueId> wanted_arguments;
    for (const Twin& twin : twins_) {
      const Argument& argument = recorder_.graph().arguments[twin.argument];
      if (!argument.requires_grad) continue;
      wanted.push_back(twin.wrapper);
      wanted_arguments.push_back(argument.value);
    }
    if (wanted.empty())
      throw CaptureFault(Exit::kCompile, "no parameter and no input requires grad: there is nothing to train",
                         "export the model with trainable parameters");
    if (list.empty()) {
      throw CaptureFault(Exit::kCompile,
                         "no output of forward is differentiable: expected a scalar loss (alone or first in a tuple) or outputs "
                         "that require grad",
                         "return the loss from forward");
    }
    std::vector<at::Tensor> roots, tangents;
    for (const size_t i : list) {
      Argument argument;
      argument.role = Role::kTangent;
      argument.name = "tangent." + std::to_string(i);
      const at::Tensor meta = meta_like(outputs_[i].sizes(), outputs_[i].strides(), outputs_[i].scalar_type());
      const ValueId value = recorder_.add_argument(meta, std::move(argument));
      recorder_.graph().outputs[i].tangent = value;
      roots.push_back(outputs_[i]);
      tangents.push_back(functional::to_functional_tensor(meta));
    }
    const ArrivalCounter arrivals(roots, wanted);
    const std::vector<at::Tensor> gradients = torch::autograd::grad(roots, wanted, tangents, /*retain_graph=*/std::nullopt,
                                                                    /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < gradients.size(); ++i) {
      Gradient gradient;
      gradient.argument = wanted_arguments[i];
      if (gradients[i].defined()) gradient.value = recorder_.value_of(inner(gradients[i]));
      recorder_.graph().gradients.push_back(gradient);
      arrivals_.push_back(arrivals.of(i));
    }
  }

  void check_missing() const {
    if (recorder_.missing_shape_functions().empty()) return;
    std::string names;
    for (const std::string& name : recorder_.missing_shape_functions()) names += "\n  " + name;
    throw CaptureFault(Exit::kUnsupported, "no shape function for:" + names,
                       "see docs/adding-an-op.md, or compile in a Python process, where torch's own meta kernels are found");
  }

  /// Twins have memory of their own each: a write through one is not seen through another.
  void check_written_state() {
    const Graph& graph = recorder_.graph();
    std::set<StorageId> written;
    for (const Writeback& writeback : graph.writebacks) written.insert(graph.values[writeback.argument].storage);
    for (const Call& call : graph.calls)
      for (const ValueId value : call.mutates) written.insert(graph.values[value].storage);
    std::map<const void*, std::vector<size_t>> sharing;  // real storage → state tensors
    for (size_t i = 0; i < model_.state.size(); ++i) {
      const at::Tensor& tensor = model_.state[i].tensor;
      if (tensor.has_storage() && tensor.storage().nbytes() > 0) sharing[tensor.storage().unsafeGetStorageImpl()].push_back(i);
    }
    for (const auto& [storage, list] : sharing) {
      if (list.size() < 2) continue;
      for (const size_t i : list) {  // the state's arguments come first, in its order
        if (!written.count(graph.values[graph.arguments[i].value].storage)) continue;
        const size_t other = list[0] == i ? list[1] : list[0];
        throw CaptureFault(
            Exit::kUnsupported,
            "forward writes '" + model_.state[i].name + "', which shares memory with '" + model_.state[other].name + "'",
            "give each its own memory before saving, e.g. by .clone()");
      }
    }
  }

  void finish() {
    Graph& graph = recorder_.graph();
    check_written_state();
    graph.warnings.insert(graph.warnings.end(), recorder_.warnings().begin(), recorder_.warnings().end());
    fold_identity_views(graph);
    remove_dead_calls(graph);
    mark_accumulations(graph, arrivals_);
    if (options_.target.device == "cpu") measure_workspaces(graph);
    graph.guards = runtime::capture_guards(options_.target.device);
    if (options_.target.device == "cuda")  // compiled for, which need not be the machine that compiles
      graph.guards["device"] = "sm_" + std::to_string(options_.target.compute_capability);
  }

  const import::Model& model_;
  const Options& options_;
  Recorder recorder_;
  std::vector<Twin> twins_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> state_twins_;
  std::map<uint64_t, Location> locations_;
  std::vector<at::Tensor> outputs_;
  std::vector<int64_t> arrivals_;  // per gradient, how many tensors autograd added up
};

}  // namespace

Expected<Graph> capture(const import::Model& model, const Options& options) { return Capture(model, options).run(); }

}  // namespace memscale::capture

// torch.export archives: version checks, state, the forward graph with its write-backs, structures.
//
// Needs a zip archive that passed the reader's checks. Nothing is unpickled, loaded as code or executed. The result is a
// ScriptModule whose forward takes the program's tensor inputs in order and returns its tensor outputs.
#include "compiler/import/pt2.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "compiler/import/pt2_graph.h"
#include "compiler/import/pt2_module.h"
#include "compiler/import/pt2_structure.h"
#include "compiler/import/pt2_tying.h"
#include "compiler/import/pt2_weights.h"
#include "compiler/import/state.h"

namespace memscale::import {
namespace {

using torch::jit::Value;

constexpr uint64_t kProgramBytes = uint64_t{512} << 20;
constexpr int64_t kSchemaMajor = 8;
constexpr int64_t kAtenOpset = 10;

std::string read_record(const Archive& archive, const std::string& name, uint64_t limit) {
  const ZipEntry* entry = archive.zip.find(archive.root + name);
  if (entry == nullptr) broken("record '" + name + "' is missing");
  Expected<std::string> text = archive.zip.read(*entry, limit);
  if (!text) throw Failure(text.error());
  return *text;
}

/// The name of the one model in the archive.
std::string model_name(const Archive& archive) {
  const std::string prefix = archive.root + "models/", suffix = ".json";
  std::set<std::string> names;
  for (const ZipEntry& e : archive.zip.entries()) {
    if (e.name.rfind(prefix, 0) != 0 || e.name.size() <= prefix.size() + suffix.size()) continue;
    if (e.name.compare(e.name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    names.insert(e.name.substr(prefix.size(), e.name.size() - prefix.size() - suffix.size()));
  }
  if (names.empty()) broken("the models folder holds no program");
  if (names.size() > 1) {
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    fail(Exit::kUnsupported, "the archive holds several programs (" + all + "): expected one",
         "save each with its own torch.export.save");
  }
  return *names.begin();
}

void check_versions(const Archive& archive, const Json& program) {
  std::string archive_version = read_record(archive, "archive_version", 64);
  if (archive_version != "0")
    fail(Exit::kUnsupported, "archive version '" + archive_version + "': expected '0'", "save it again with PyTorch 2.11");
  if (archive.zip.find(archive.root + "byteorder") != nullptr) {
    std::string order = read_record(archive, "byteorder", 64);
    if (order != "little")
      fail(Exit::kUnsupported, "byte order '" + order + "': expected 'little'", "save it on a little-endian machine");
  }
  const Json& version = member(program, "schema_version");
  int64_t major = integer_of(member(version, "major"), "schema version");
  if (major != kSchemaMajor) {
    fail(Exit::kUnsupported, "export schema version " + std::to_string(major) + ": expected " + std::to_string(kSchemaMajor),
         "save it again with PyTorch 2.11");
  }
  const Json* opset = find_member(member(program, "opset_version"), "aten");
  if (opset != nullptr && integer_of(*opset, "opset version") != kAtenOpset) {
    fail(Exit::kUnsupported, "ATen opset version " + opset->dump() + ": expected " + std::to_string(kAtenOpset),
         "save it again with PyTorch 2.11");
  }
}

OrderedJson constant_structure(const std::string& kind, const Json& value) {
  if (kind == "as_none") return {{"none", true}};
  if (kind == "as_int") return {{"const", integer_of(value, "constant")}};
  if (kind == "as_float")
    return {{"const", value.is_string() ? OrderedJson(text_of(value, "constant")) : OrderedJson(real_of(value, "constant"))}};
  if (kind == "as_bool") return {{"const", boolean_of(value, "constant")}};
  if (kind == "as_string") return {{"const", text_of(value, "constant")}};
  fail(Exit::kUnsupported, "a constant of kind " + kind + " at the border of the exported program is not read");
}

bool is_identifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

class Importer {
 public:
  Importer(const Archive& archive, const std::string& path, const OpenOptions& options)
      : archive_(archive), options_(options), model_(std::make_shared<Model>()) {
    model_->path = path;
    model_->info.format = "torch.export";
  }

  std::shared_ptr<Model> run() {
    const std::string name = model_name(archive_);
    program_ = parse_json(read_record(archive_, "models/" + name + ".json", kProgramBytes), "the exported program");
    object_of(program_, "the exported program");
    check_versions(archive_, program_);
    const Json& module = member(program_, "graph_module");
    graph_json_ = &object_of(member(module, "graph"), "graph");
    const Json& signature = member(module, "signature");
    payloads_ = read_payloads(archive_, name, options_.read_weights);
    model_->info.has_weights = !payloads_.structure_only;
    read_input_specs(array_of(member(signature, "input_specs"), "input_specs"));
    if (payloads_.structure_only) infer_tying(*graph_json_, state_inputs_, payloads_, model_->warnings);
    order_payloads();
    build_state(array_of(member(module, "module_call_graph"), "module_call_graph"));
    build_forward(array_of(member(signature, "output_specs"), "output_specs"));
    build_structures(array_of(member(module, "module_call_graph"), "module_call_graph"),
                     array_of(member(signature, "output_specs"), "output_specs"));
    model_->module = modules_.root();
    return model_;
  }

 private:
  size_t payload_of(const std::string& name) {
    auto it = payloads_.index.find(name);
    if (it == payloads_.index.end()) broken("'" + name + "' of the signature has no payload");
    return it->second;
  }

  void read_input_specs(const Json& specs) {
    const Json& inputs = array_of(member(*graph_json_, "inputs"), "inputs");
    if (inputs.size() != specs.size())
      broken("the signature has " + std::to_string(specs.size()) + " inputs, the graph " + std::to_string(inputs.size()));
    for (const Json& spec : specs) {
      auto [kind, body] = union_of(spec, "input");
      auto placeholder = [&, b = &body] { return text_of(member(member(*b, "arg"), "name"), "input name"); };
      if (kind == "parameter") {
        state_inputs_.push_back({placeholder(), payload_of(text_of(member(body, "parameter_name"), "parameter_name")), true});
      } else if (kind == "buffer") {
        size_t payload = payload_of(text_of(member(body, "buffer_name"), "buffer_name"));
        buffers_[payload] = boolean_of(member(body, "persistent"), "persistent");
        state_inputs_.push_back({placeholder(), payload, false});
      } else if (kind == "tensor_constant") {
        size_t payload = payload_of(text_of(member(body, "tensor_constant_name"), "tensor_constant_name"));
        constants_.insert(payload);
        state_inputs_.push_back({placeholder(), payload, false});
      } else if (kind == "user_input") {
        auto [form, named] = union_of(member(body, "arg"), "input");
        if (form != "as_tensor") {
          fail(Exit::kUnsupported, "a forward input is a number that may vary (" + form + "): expected tensors and constants",
               "export with a fixed number, or pass a tensor");
        }
        user_inputs_.push_back({text_of(member(named, "name"), "input name"), OrderedJson()});
      } else if (kind == "constant_input") {
        auto [form, value] = union_of(member(body, "value"), "constant input");
        user_inputs_.push_back({"", constant_structure(form, value)});
      } else {
        fail(Exit::kUnsupported, "a forward input of kind '" + kind + "' is not read: expected tensors and constants",
             "export the model without custom objects and effect tokens");
      }
    }
  }

  /// The order of the original's modules: the signature has it, parameters and buffers apart. What it does not name comes last.
  void order_payloads() {
    std::vector<bool> seen(payloads_.list.size());
    std::vector<std::string> parameters, buffers;
    const auto take = [&](size_t i) {
      if (seen[i]) return;
      seen[i] = true;
      (payloads_.list[i].is_parameter ? parameters : buffers).push_back(payloads_.list[i].name);
    };
    for (const StateInput& input : state_inputs_) take(input.payload);
    for (size_t i = 0; i < payloads_.list.size(); ++i) take(i);
    for (const std::string& name : merge_names(parameters, buffers)) order_.push_back(payloads_.index.at(name));
  }

  void build_state(const Json& calls) {
    StateList list;
    for (const size_t i : order_) {
      const Payload& p = payloads_.list[i];
      bool constant = constants_.count(i) > 0;
      StateKind kind = p.is_parameter ? StateKind::kParameter : constant ? StateKind::kConstant : StateKind::kBuffer;
      modules_.add(p.name, p.tensor, kind);
      StateTensor s;
      s.name = p.name;
      s.tensor = p.tensor;
      s.is_parameter = p.is_parameter;
      s.requires_grad = p.tensor.requires_grad();
      auto buffer = buffers_.find(i);
      s.persistent = !constant && (buffer == buffers_.end() || buffer->second);
      list.add(std::move(s));
    }
    model_->state_names = list.names();
    Expected<std::vector<StateTensor>> state = list.take();
    if (!state) throw Failure(state.error());
    model_->state = std::move(*state);
    count_state(model_->state, model_->info);
    for (const Json& call : calls) {
      const std::string& fqn = text_of(member(call, "fqn"), "fqn");
      if (fqn.find('@') == std::string::npos) modules_.add_module(fqn);
    }
  }

  void describe_input(const std::string& name) {
    InputInfo info;
    info.name = name;
    const Json* meta = find_member(member(*graph_json_, "tensor_values"), name.c_str());
    if (meta != nullptr) {
      TensorMeta t = tensor_meta_of(*meta, name);
      info.dtype = dtype_name(t.dtype);
      info.shape_known = !t.dynamic;
      info.sizes = t.sizes;
    }
    model_->info.inputs.push_back(std::move(info));
  }

  void build_forward(const Json& output_specs) {
    torch::jit::Module& root = modules_.root();
    auto graph = std::make_shared<torch::jit::Graph>();
    Value* self = graph->addInput("self");
    self->setType(root.type());
    GraphTranslator translator(*graph);
    NameScope scope(*graph_json_);

    // One read of each tensor, by its first name: gradients of tied parameters meet in one tensor.
    AttributeReader attributes(*graph, self);
    std::unordered_map<at::TensorImpl*, Value*> read;
    std::unordered_map<std::string, Value*> buffer_values;
    std::unordered_map<at::TensorImpl*, const std::string*> first_name;
    for (const size_t i : order_) first_name.try_emplace(payloads_.list[i].tensor.unsafeGetTensorImpl(), &payloads_.list[i].name);
    for (const StateInput& input : state_inputs_) {
      const Payload& p = payloads_.list[input.payload];
      Value*& value = read[p.tensor.unsafeGetTensorImpl()];
      if (value == nullptr) value = attributes.read(*first_name.at(p.tensor.unsafeGetTensorImpl()));
      translator.bind(scope, input.placeholder, value, p.tensor.requires_grad());
      buffer_values[p.name] = value;
    }
    std::unordered_map<std::string, Value*> input_values;
    for (const UserInput& input : user_inputs_) {
      if (input.name.empty()) continue;
      Value* value = graph->addInput(is_identifier(input.name) ? input.name : "");
      value->setType(c10::TensorType::get());
      translator.bind(scope, input.name, value);
      input_values[input.name] = value;
      describe_input(input.name);
    }
    translator.nodes(scope);

    std::vector<Value*> results;
    const Json& outputs = array_of(member(*graph_json_, "outputs"), "outputs");
    if (outputs.size() != output_specs.size()) broken("the signature has another number of outputs than the graph");
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto [kind, body] = union_of(output_specs[i], "output");
      if (kind == "buffer_mutation" || kind == "user_input_mutation") {
        bool buffer = kind == "buffer_mutation";
        const std::string& name = text_of(member(body, buffer ? "buffer_name" : "user_input_name"), "mutated tensor");
        auto& targets = buffer ? buffer_values : input_values;
        auto target = targets.find(name);
        Value* value = translator.output(scope, outputs[i]);
        if (target == targets.end() || value == nullptr) broken("the mutated tensor '" + name + "' is not among the inputs");
        graph->insert(c10::Symbol::aten("copy_"), {target->second, value});
      } else if (kind == "user_output" || kind == "loss_output") {
        Value* value = translator.output(scope, outputs[i]);
        if (value == nullptr) continue;
        if (value->type()->kind() != c10::TypeKind::TensorType) {
          fail(Exit::kUnsupported,
               "output " + std::to_string(i) + " is a number that depends on shapes: expected tensors and constants",
               "export with static shapes");
        }
        results.push_back(value);
      } else {
        fail(Exit::kUnsupported, "an output of kind '" + kind + "' is not read",
             kind == "parameter_mutation" ? "the forward writes to a parameter: make it a buffer"
                                          : "export the forward alone; memscale derives the backward");
      }
    }
    Value* result = results.size() == 1 ? results[0] : graph->insertNode(graph->createTuple(results))->output();
    graph->registerOutput(result);
    remove_unused_reads(*graph);
    graph->lint();
    torch::jit::Function* forward =
        root._ivalue()->compilation_unit()->create_function(c10::QualifiedName(*root.type()->name(), "forward"), graph);
    root.type()->addMethod(forward);
    // The optimizing executor replaces derivatives by TorchScript's own, which round differently from autograd's.
    torch::jit::toGraphFunction(*forward)._set_initial_executor_execution_mode(torch::jit::ExecutorExecutionMode::SIMPLE);
    for (const std::string& device : translator.idle_autocasts()) {
      model_->warnings.push_back("autocast for " + device +
                                 " does nothing in this program: its tensors are on another device; export the model from the " +
                                 device + " device to have the casts");
    }
    if (translator.dropped_assertions() > 0) {
      model_->warnings.push_back(
          std::to_string(translator.dropped_assertions()) +
          " assertions on shapes and dtypes inside the exported program are left out: the plan's guards check its inputs");
    }
  }

  /// Attributes that nothing uses would otherwise stand in every saved copy of the code.
  static void remove_unused_reads(torch::jit::Graph& graph) {
    std::vector<torch::jit::Node*> reads;
    for (torch::jit::Node* n : graph.nodes()) {
      if (n->kind() == torch::jit::prim::GetAttr) reads.push_back(n);
    }
    for (auto n = reads.rbegin(); n != reads.rend(); ++n) {
      if (!(*n)->hasUses()) (*n)->destroy();
    }
  }

  void build_structures(const Json& calls, const Json& output_specs) {
    const Json* signature = nullptr;
    for (const Json& call : calls) {
      if (text_of(member(call, "fqn"), "fqn").empty()) signature = find_member(call, "signature");
    }
    if (signature == nullptr) broken("the call graph has no signature for the whole module");
    const Json* fields = find_member(member(program_, "graph_module"), "treespec_namedtuple_fields");
    size_t next_input = 0, leaf = 0;
    NextLeaf input_leaf = [&]() -> OrderedJson {
      if (next_input >= user_inputs_.size()) broken("in_spec has more leaves than the signature has inputs");
      const UserInput& input = user_inputs_[next_input++];
      return input.name.empty() ? input.constant : OrderedJson{{"leaf", leaf++}};
    };
    model_->input_structure = input_structure_of_spec(text_of(member(*signature, "in_spec"), "in_spec"),
                                                      find_member(*signature, "forward_arg_names"), fields, input_leaf)
                                  .dump();
    if (next_input != user_inputs_.size()) broken("in_spec has fewer leaves than the signature has inputs");

    std::vector<OrderedJson> leaves;
    size_t tensors = 0;
    for (const Json& spec : output_specs) {
      auto [kind, body] = union_of(spec, "output");
      if (kind == "loss_output") leaves.push_back({{"leaf", tensors++}});
      if (kind != "user_output") continue;
      auto [form, value] = union_of(member(body, "arg"), "output");
      leaves.push_back(form == "as_tensor" ? OrderedJson{{"leaf", tensors++}} : constant_structure(form, value));
    }
    size_t next_output = 0;
    NextLeaf output_leaf = [&]() -> OrderedJson {
      if (next_output >= leaves.size()) broken("out_spec has more leaves than the signature has outputs");
      return leaves[next_output++];
    };
    model_->output_structure =
        structure_of_spec(text_of(member(*signature, "out_spec"), "out_spec"), "out_spec", fields, output_leaf).dump();
    if (next_output != leaves.size()) broken("out_spec has fewer leaves than the signature has outputs");
  }

  struct UserInput {
    std::string name;  // empty: a constant
    OrderedJson constant;
  };

  const Archive& archive_;
  const OpenOptions& options_;
  std::shared_ptr<Model> model_;
  Json program_;
  const Json* graph_json_ = nullptr;
  Payloads payloads_;
  std::vector<size_t> order_;  // of payloads, as the state has them
  std::vector<StateInput> state_inputs_;
  std::vector<UserInput> user_inputs_;
  std::map<size_t, bool> buffers_;  // payload → persistent
  std::set<size_t> constants_;
  ModuleBuilder modules_;
};

}  // namespace

Expected<std::shared_ptr<Model>> open_pt2(const Archive& archive, const std::string& path, const OpenOptions& options) {
  try {
    return Importer(archive, path, options).run();
  } catch (const Failure& f) {
    Error error = f.error;
    error.message = "'" + path + "': " + error.message;
    return error;
  }
}

}  // namespace memscale::import

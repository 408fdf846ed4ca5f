// Interpreter of TorchScript graphs for capture. No optimisation passes run: they would merge calls that eager makes apart. Needs
// the recorder's scope to be active; the module is not changed (attribute assignments stay inside the runner).
#include "compiler/capture/graph_runner.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

#include "compiler/import/location.h"

namespace memscale::capture {
namespace {

constexpr int kMaxCallDepth = 1000;
constexpr int64_t kMaxLoopIterations = 1 << 20;

Location location_of(const torch::jit::Node& node, const std::string& path) {
  Location location;
  location.module_path = path;
  if (const std::string scope = node.scopeName(); !scope.empty()) location.module_path = scope;
  const import::UserLocation user = import::user_location(node.sourceRange());
  location.file = user.file;
  location.line = static_cast<int32_t>(user.line);
  return location;
}

[[noreturn]] void unsupported(const torch::jit::Node& node, const std::string& path, const std::string& what) {
  const Location location = location_of(node, path);
  std::string at;
  if (!location.file.empty()) at = location.file + ":" + std::to_string(location.line) + ": ";
  throw CaptureFault(Exit::kUnsupported, at + what, "trace or export the model so that the step is a plain tensor graph");
}

/// A Python number that tracing turned into a 0-d tensor promotes as the number did.
c10::IValue as_wrapped_number(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const at::Tensor& tensor = value.toTensor();
  const bool number = tensor.dim() == 0 && tensor.device().is_cpu() &&
                      (tensor.scalar_type() == at::kDouble || tensor.scalar_type() == at::kLong ||
                       tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kComplexDouble);
  if (!number) return value;
  OutsideCapture outside;
  at::Tensor wrapped = tensor.detach().clone();
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

/// TorchScript operators that reach into a tensor's memory without the dispatcher: captured tensors have none.
bool reads_memory(c10::Symbol kind) { return kind == torch::jit::prim::tolist || kind == c10::Symbol::aten("_tensor_to_list"); }

/// A tensor made from numbers or lists of them.
bool writes_literal(c10::Symbol kind) {
  static const c10::Symbol kinds[] = {c10::Symbol::aten("tensor"), c10::Symbol::aten("as_tensor"),
                                      c10::Symbol::aten("_list_to_tensor")};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

/// Makes the tensor on the host, as a constant behind a wrapper: the graph may write over it.
void run_literal(const torch::jit::Node& node, torch::jit::Stack& stack) {
  c10::IValue device;
  const bool options = node.kind() != c10::Symbol::aten("_list_to_tensor");  // (data, dtype, device, requires_grad)
  if (options) {
    std::swap(device, stack.at(2));
  }
  {
    OutsideCapture outside;
    node.getOperation()(stack);
  }
  const at::Tensor literal = at::functionalization::impl::to_functional_tensor(stack.back().toTensor());
  stack.back() = device.isNone() ? literal : literal.to(device.toDevice(), literal.scalar_type());
}

}  // namespace

GraphRunner::GraphRunner(Recorder& recorder, const torch::jit::Module& module,
                         std::unordered_map<const c10::TensorImpl*, at::Tensor> twins)
    : recorder_(recorder), module_(module), twins_(std::move(twins)) {
  for (const auto& named : module.named_modules()) paths_.emplace(named.value._ivalue().get(), named.name);
}

c10::IValue GraphRunner::run(std::vector<c10::IValue> inputs) {
  const auto graph = module_.get_method("forward").graph();
  inputs.insert(inputs.begin(), module_._ivalue());
  std::vector<c10::IValue> outputs = run_method(*graph, std::move(inputs), "");
  return outputs.at(0);
}

std::vector<c10::IValue> GraphRunner::run_method(const torch::jit::Graph& graph, std::vector<c10::IValue> inputs,
                                                 const std::string& path) {
  if (++call_depth_ > kMaxCallDepth) throw CaptureFault(Exit::kUnsupported, "methods call each other more than 1000 deep");
  Values values;
  if (inputs.size() != graph.inputs().size())
    throw CaptureFault(Exit::kUsage, "forward takes " + std::to_string(graph.inputs().size() - 1) + " inputs, " +
                                         std::to_string(inputs.size() - 1) + " were given");
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = std::move(inputs[i]);
  run_block(*graph.block(), values, path);
  std::vector<c10::IValue> outputs;
  for (const torch::jit::Value* output : graph.outputs()) outputs.push_back(values.at(output));
  --call_depth_;
  return outputs;
}

void GraphRunner::run_block(const torch::jit::Block& block, Values& values, const std::string& path) {
  for (const torch::jit::Node* node : block.nodes()) {
    const uint64_t sequence = at::sequence_number::peek();
    const Location before = recorder_.location();
    recorder_.set_location(location_of(*node, path));
    run_node(*node, values, path);
    if (at::sequence_number::peek() != sequence) sequence_locations_.try_emplace(sequence, location_of(*node, path));
    recorder_.set_location(before);
  }
}

void GraphRunner::run_node(const torch::jit::Node& node, Values& values, const std::string& path) {
  namespace prim = torch::jit::prim;
  switch (node.kind()) {
    case prim::If:
      return run_if(node, values, path);
    case prim::Loop:
      return run_loop(node, values, path);
    case prim::CallMethod:
    case prim::CallFunction:
      return run_call(node, values, path);
    case prim::GetAttr:
      values[node.output()] = get_attribute(values.at(node.input()), node.s(torch::jit::attr::name));
      return;
    case prim::SetAttr:
      assigned_[{values.at(node.input(0)).toObject().get(), node.s(torch::jit::attr::name)}] = values.at(node.input(1));
      return;
    default:
      if (!run_structural(node, values)) {
        if (!node.maybeOperator())
          unsupported(node, path, std::string("TorchScript node ") + node.kind().toQualString() + " cannot be captured");
        if (reads_memory(node.kind()))
          unsupported(node, path,
                      std::string(node.kind().toQualString()) + " reads the contents of a tensor: the graph depends on data");
        run_operator(node, values);
      }
  }
}

bool GraphRunner::run_structural(const torch::jit::Node& node, Values& values) {
  namespace prim = torch::jit::prim;
  const auto inputs = [&] {
    std::vector<c10::IValue> list;
    for (const torch::jit::Value* input : node.inputs()) list.push_back(values.at(input));
    return list;
  };
  switch (node.kind()) {
    case prim::Constant: {
      const auto [entry, fresh] = constants_.try_emplace(node.output());
      if (fresh) entry->second = as_wrapped_number(*torch::jit::toIValue(node.output()));
      values[node.output()] = entry->second;
      return true;
    }
    case prim::TupleConstruct: {
      const auto type = node.output()->type()->expect<c10::TupleType>();
      values[node.output()] =
          type->name() ? c10::ivalue::Tuple::createNamed(inputs(), type) : c10::ivalue::Tuple::create(inputs());
      return true;
    }
    case prim::TupleUnpack: {
      const auto& elements = values.at(node.input()).toTupleRef().elements();
      for (size_t i = 0; i < node.outputs().size(); ++i) values[node.output(i)] = elements[i];
      return true;
    }
    case prim::ListConstruct: {
      const c10::TypePtr element_type = node.output()->type()->expect<c10::ListType>()->getElementType();
      if (*element_type != *c10::TensorType::get() && element_type->isSubtypeOf(*c10::OptionalType::ofTensor())) {
        c10::List<std::optional<at::Tensor>> tensors;  // indices; the loader may have refined the element type
        for (const c10::IValue& element : inputs()) tensors.push_back(element.toOptional<at::Tensor>());
        values[node.output()] = std::move(tensors);
        return true;
      }
      c10::impl::GenericList list(element_type);
      for (c10::IValue& element : inputs()) list.push_back(std::move(element));
      values[node.output()] = std::move(list);
      return true;
    }
    case prim::ListUnpack: {
      const auto list = values.at(node.input()).toList();
      if (list.size() != node.outputs().size())
        throw CaptureFault(Exit::kUnsupported, "a list of " + std::to_string(list.size()) + " elements is unpacked into " +
                                                   std::to_string(node.outputs().size()) + " values");
      for (size_t i = 0; i < node.outputs().size(); ++i) values[node.output(i)] = list.get(i);
      return true;
    }
    case prim::DictConstruct: {
      const auto type = node.output()->type()->expect<c10::DictType>();
      c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
      for (size_t i = 0; i + 1 < node.inputs().size(); i += 2)
        dict.insert_or_assign(values.at(node.input(i)), values.at(node.input(i + 1)));
      values[node.output()] = std::move(dict);
      return true;
    }
    case prim::CreateObject: {
      const auto type = node.output()->type()->expect<c10::ClassType>();
      values[node.output()] =
          c10::ivalue::Object::create(c10::StrongTypePtr(module_._ivalue()->compilation_unit(), type), type->numAttributes());
      return true;
    }
    case prim::Uninitialized:
      values[node.output()] = c10::IValue();
      return true;
    case prim::unchecked_cast:
    case prim::unchecked_unwrap_optional:
      values[node.output()] = values.at(node.input());
      return true;
    case prim::isinstance: {
      bool is = false;
      for (const c10::TypePtr& type : node.tys(torch::jit::attr::types))
        is = is || values.at(node.input()).type<>()->isSubtypeOf(*type);
      values[node.output()] = is;
      return true;
    }
    case prim::Enter: {
      // `with` on a context object: TorchScript calls __enter__ and __exit__ of the class.
      const c10::IValue object = values.at(node.input());
      const auto& method = object.toObject()->type()->getMethod("__enter__");
      values[node.output()] =
          run_method(*torch::jit::toGraphFunction(method).graph(), {object}, recorder_.location().module_path).at(0);
      return true;
    }
    case prim::Exit: {
      const c10::IValue object = values.at(node.input());
      const auto& method = object.toObject()->type()->getMethod("__exit__");
      run_method(*torch::jit::toGraphFunction(method).graph(), {object, c10::IValue(), c10::IValue(), c10::IValue()},
                 recorder_.location().module_path);
      values[node.output()] = c10::IValue();
      return true;
    }
    default:
      return false;
  }
}

void GraphRunner::run_operator(const torch::jit::Node& node, Values& values) {
  const torch::jit::Operator& op = node.getOperator();
  torch::jit::Stack stack;
  for (const torch::jit::Value* input : node.inputs()) stack.push_back(values.at(input));
  if (op.schema().is_vararg()) stack.emplace_back(static_cast<int64_t>(node.inputs().size()));
  if (writes_literal(node.kind()) && !stack.at(0).isTensor())
    run_literal(node, stack);
  else
    node.getOperation()(stack);
  if (stack.size() != node.outputs().size())
    throw CaptureFault(Exit::kInternal, std::string(node.kind().toQualString()) + " left " + std::to_string(stack.size()) +
                                            " values for " + std::to_string(node.outputs().size()) + " outputs");
  for (size_t i = 0; i < stack.size(); ++i) values[node.output(i)] = std::move(stack[i]);
}

void GraphRunner::run_if(const torch::jit::Node& node, Values& values, const std::string& path) {
  const torch::jit::Block& block = *node.blocks()[values.at(node.input()).toBool() ? 0 : 1];
  run_block(block, values, path);
  for (size_t i = 0; i < node.outputs().size(); ++i) values[node.output(i)] = values.at(block.outputs()[i]);
}

void GraphRunner::run_loop(const torch::jit::Node& node, Values& values, const std::string& path) {
  const torch::jit::Block& body = *node.blocks()[0];
  const int64_t trips = values.at(node.input(0)).toInt();
  bool go_on = values.at(node.input(1)).toBool();
  std::vector<c10::IValue> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(values.at(node.input(i)));
  for (int64_t trip = 0; trip < trips && go_on; ++trip) {
    if (trip >= kMaxLoopIterations)
      unsupported(node, path, "a loop runs more than " + std::to_string(kMaxLoopIterations) + " times");
    values[body.inputs()[0]] = trip;
    for (size_t i = 0; i < carried.size(); ++i) values[body.inputs()[i + 1]] = carried[i];
    run_block(body, values, path);
    go_on = values.at(body.outputs()[0]).toBool();
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = values.at(body.outputs()[i + 1]);
  }
  for (size_t i = 0; i < carried.size(); ++i) values[node.output(i)] = std::move(carried[i]);
}

void GraphRunner::run_call(const torch::jit::Node& node, Values& values, const std::string& path) {
  std::vector<c10::IValue> inputs;
  for (const torch::jit::Value* input : node.inputs()) inputs.push_back(values.at(input));
  torch::jit::Function* function = nullptr;
  std::string callee_path = path;
  if (node.kind() == torch::jit::prim::CallMethod) {
    const auto object = inputs.at(0).toObject();
    function = object->type()->findMethod(node.s(torch::jit::attr::name));
    if (const auto found = paths_.find(object.get()); found != paths_.end()) callee_path = found->second;
  } else {
    function = node.input(0)->type()->expect<c10::FunctionType>()->function();
    inputs.erase(inputs.begin());
  }
  if (!function || !function->isGraphFunction())
    unsupported(node, path, "a call of something that is no TorchScript function (a Python or built-in callable)");
  std::vector<c10::IValue> outputs = run_method(*torch::jit::toGraphFunction(*function).graph(), std::move(inputs), callee_path);
  for (size_t i = 0; i < node.outputs().size(); ++i) values[node.output(i)] = std::move(outputs[i]);
}

c10::IValue GraphRunner::get_attribute(const c10::IValue& value, const std::string& name) {
  const auto object = value.toObject();
  if (const auto assigned = assigned_.find({object.get(), name}); assigned != assigned_.end()) return assigned->second;
  return with_twins(object->getAttr(name));
}

c10::IValue GraphRunner::with_twins(const c10::IValue& value) const {
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return value;
    const auto twin = twins_.find(value.toTensor().unsafeGetTensorImpl());
    if (twin != twins_.end()) return twin->second;
    if (value.toTensor().requires_grad())
      throw CaptureFault(Exit::kUnsupported,
                         "forward uses a tensor that requires a gradient and is neither a parameter nor a buffer",
                         "register it as a parameter");
    return value;
  }
  if (value.isList()) {
    const auto list = value.toList();
    c10::impl::GenericList mapped(list.elementType());
    for (size_t i = 0; i < list.size(); ++i) mapped.push_back(with_twins(list.get(i)));
    return mapped;
  }
  if (value.isTuple() && !value.toTupleRef().type<c10::TupleType>()->name()) {
    std::vector<c10::IValue> mapped;
    for (const c10::IValue& element : value.toTupleRef().elements()) mapped.push_back(with_twins(element));
    return c10::ivalue::Tuple::create(std::move(mapped));
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict mapped(dict.keyType(), dict.valueType());
    for (const auto& entry : dict) mapped.insert(entry.key(), with_twins(entry.value()));
    return mapped;
  }
  return value;
}

}  // namespace memscale::capture

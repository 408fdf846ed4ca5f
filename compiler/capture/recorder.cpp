// Recording of ATen calls. Needs meta kernels (libtorch's or compiler/capture/shapes); destroys nothing: tensors given are only
// read.
#include "compiler/capture/recorder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <regex>

#include "compiler/capture/dtype_names.h"
#include "compiler/capture/effects.h"
#include "compiler/capture/shapes/shapes.h"

namespace memscale::capture {
namespace {

// Largest tensor (in elements) whose contents are computed beside its meta twin, for `item()` and sizes that come from it.
constexpr int64_t kMaxShadowElements = 4096;

template <class F>
void for_each_tensor(const c10::IValue& value, F&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) visit(*tensor);
  }
}

template <class F>
c10::IValue map_tensors(const c10::IValue& value, F&& map) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(map(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(tensor.defined() ? map(tensor) : tensor);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor && tensor->defined() ? std::optional<at::Tensor>(map(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

bool is_device_argument(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.type();
  if (type->kind() == c10::TypeKind::DeviceObjType) return true;
  const auto optional = type->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::DeviceObjType;
}

c10::DispatchKeySet capture_keys() {
  return c10::DispatchKeySet(
      {c10::DispatchKey::TESTING_ONLY_GenericMode, c10::DispatchKey::Functionalize, c10::DispatchKey::Fake});
}

std::string op_name(const c10::OperatorHandle& op) { return toString(op.operator_name()); }

/// "foo_(Tensor(a!) self, ...) -> Tensor(a!)": the result is self.
bool is_in_place(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto writes = [](const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); };
  return schema.name().back() == '_' && schema.returns().size() == 1 && !schema.arguments().empty() &&
         writes(schema.arguments()[0]) && writes(schema.returns()[0]) &&
         schema.arguments()[0].type()->kind() == c10::TypeKind::TensorType;
}

}  // namespace

OutsideCapture::OutsideCapture() : guard_(capture_keys()), modes_(c10::autograd_dispatch_keyset_with_ADInplaceOrView) {}

Recorder::Recorder(const Target& target) : target_(target) { graph_.target = target.device; }

bool Recorder::known(const at::Tensor& tensor) const { return values_.count(tensor.unsafeGetTensorImpl()) != 0; }

at::Tensor Recorder::shadow_of(const at::Tensor& tensor) const {
  if (!tensor.is_meta()) return tensor.numel() <= kMaxShadowElements ? tensor : at::Tensor();
  const auto value = values_.find(tensor.unsafeGetTensorImpl());
  if (value == values_.end()) return {};
  const auto shadow = shadows_.find(value->second);
  return shadow == shadows_.end() ? at::Tensor() : shadow->second;
}

ValueId Recorder::new_value(const at::Tensor& meta) {
  const auto id = static_cast<ValueId>(graph_.values.size());
  Value value;
  const auto name = dtype_name(meta.scalar_type());
  if (!name)
    throw CaptureFault(Exit::kUnsupported,
                       where() + "a tensor of dtype " + toString(meta.scalar_type()) + ", which is not supported");
  value.dtype = *name;
  value.sizes = meta.sizes().vec();
  value.strides = meta.strides().vec();
  value.offset = meta.storage_offset();
  value.conjugated = meta.is_conj();
  value.negated = meta.is_neg();
  const c10::StorageImpl* storage = meta.storage().unsafeGetStorageImpl();
  const auto [entry, fresh] = storages_.try_emplace(storage, static_cast<StorageId>(graph_.storages.size()));
  if (fresh) graph_.storages.push_back({static_cast<int64_t>(storage->nbytes()), Place::kTarget});
  value.storage = entry->second;
  value.place = graph_.storages[value.storage].place;
  graph_.values.push_back(std::move(value));
  values_.emplace(meta.unsafeGetTensorImpl(), id);
  keep_alive_.push_back(meta);
  return id;
}

ValueId Recorder::add_argument(const at::Tensor& meta, Argument argument) {
  argument.value = new_value(meta);
  graph_.arguments.push_back(std::move(argument));
  return graph_.arguments.back().value;
}

ValueId Recorder::constant_of(const at::Tensor& tensor) {
  OutsideCapture outside;
  const at::Tensor data = tensor.detach().contiguous();
  Argument argument;
  argument.role = Role::kConstant;
  argument.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  argument.data.assign(static_cast<const char*>(data.const_data_ptr()), data.nbytes());
  std::string content = std::to_string(static_cast<int>(data.scalar_type())) + (argument.wrapped_number ? "w" : "t");
  for (int64_t size : data.sizes()) content += "," + std::to_string(size);
  content += ":" + argument.data;
  if (const auto found = constants_by_content_.find(content); found != constants_by_content_.end()) {
    // The twin is the first one's: constants are read only, equal ones are one.
    constant_twins_.emplace(tensor.unsafeGetTensorImpl(), keep_alive_[found->second]);
    keep_alive_.push_back(tensor);
    return values_.at(keep_alive_[found->second].unsafeGetTensorImpl());
  }
  argument.name = "constant." + std::to_string(constants_by_content_.size());
  const bool scalar = data.dim() == 0;
  const at::Tensor meta = at::empty_strided(data.sizes(), data.strides(), data.options().device(c10::kMeta));
  const size_t kept = keep_alive_.size();
  const ValueId id = add_argument(meta, std::move(argument));
  if (scalar && target_.device != "cpu") {
    graph_.values[id].place = Place::kHost;
    graph_.storages[graph_.values[id].storage].place = Place::kHost;
  }
  if (data.numel() <= kMaxShadowElements) shadows_.emplace(id, data);
  constant_twins_.emplace(tensor.unsafeGetTensorImpl(), meta);
  keep_alive_.push_back(tensor);
  constants_by_content_.emplace(std::move(content), static_cast<ValueId>(kept));
  return id;
}

ValueId Recorder::value_of(const at::Tensor& tensor) {
  const auto found = values_.find(tensor.unsafeGetTensorImpl());
  if (found != values_.end()) return found->second;
  if (const auto twin = constant_twins_.find(tensor.unsafeGetTensorImpl()); twin != constant_twins_.end())
    return values_.at(twin->second.unsafeGetTensorImpl());
  if (tensor.is_meta()) {
    // A second TensorImpl over a known storage (detach and alias leave such behind): the same memory under the same layout.
    if (storages_.count(tensor.storage().unsafeGetStorageImpl())) {
      const StorageId storage = storages_.at(tensor.storage().unsafeGetStorageImpl());
      for (auto value = static_cast<ValueId>(graph_.values.size()) - 1; value >= 0; --value) {
        const Value& seen = graph_.values[value];
        if (seen.storage == storage && seen.offset == tensor.storage_offset() && seen.sizes == tensor.sizes().vec() &&
            seen.strides == tensor.strides().vec() && seen.dtype == dtype_name(tensor.scalar_type()) &&
            seen.conjugated == tensor.is_conj() && seen.negated == tensor.is_neg()) {
          values_.emplace(tensor.unsafeGetTensorImpl(), value);
          keep_alive_.push_back(tensor);
          return value;
        }
      }
    }
    throw CaptureFault(Exit::kInternal, where() + "a tensor that no recorded call has made");
  }
  return constant_of(tensor);
}

Location Recorder::call_location() const {
  if (backward_) {
    if (const auto node = torch::autograd::get_current_node()) {
      auto found = backward_locations_.upper_bound(node->sequence_nr());
      if (found != backward_locations_.begin()) return std::prev(found)->second;
    }
  }
  return location_;
}

std::string Recorder::where() const {
  const Location location = call_location();
  std::string text;
  if (!location.file.empty()) text += location.file + ":" + std::to_string(location.line) + ": ";
  if (!location.module_path.empty()) text += "in " + location.module_path + ": ";
  return text;
}

void Recorder::begin_backward(std::map<uint64_t, Location> locations) {
  backward_ = true;
  backward_locations_ = std::move(locations);
  graph_.backward_begin = graph_.calls.size();
}

Arg Recorder::argument(const c10::IValue& value, const c10::Argument& schema) {
  if (value.isNone()) return None{};
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return None{};
    return Operand{value_of(value.toTensor())};
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    OperandList list;
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector())
        list.values.push_back(tensor.defined() ? value_of(tensor) : kNoValue);
    } else {
      for (const auto& tensor : value.toOptionalTensorVector())
        list.values.push_back(tensor && tensor->defined() ? value_of(*tensor) : kNoValue);
    }
    return list;
  }
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isString()) return std::string(value.toStringRef());
  if (value.isComplexDouble()) return Complex{value.toComplexDouble().real(), value.toComplexDouble().imag()};
  if (value.isDevice()) return DeviceArg{Place::kTarget};
  if (value.isIntList()) return value.toIntVector();
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isBoolList()) {
    const auto list = value.toBoolList();
    return std::vector<bool>(list.begin(), list.end());
  }
  if (value.isList()) {  // e.g. an empty list of unknown element type, or SymInt[]
    std::vector<int64_t> ints;
    bool all_ints = true;
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isInt()) all_ints = false;
      if (all_ints) ints.push_back(element.toInt());
    }
    if (all_ints) return ints;
  }
  if (value.isGenerator())
    throw CaptureFault(Exit::kUnsupported,
                       where() + "argument '" + schema.name() + "' is an explicit random generator, which a plan cannot hold",
                       "use the default generator (torch.manual_seed)");
  throw CaptureFault(Exit::kUnsupported, where() + "argument '" + schema.name() + "' of type " + value.tagKind() +
                                             " is not supported in a captured call");
}

void Recorder::compute(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  OutsideCapture outside;
  if (const shapes::ShapeFn shape = shapes::find_shape_function(op.operator_name(), target_)) {
    shape(op, *stack);
    return;
  }
  const std::vector<c10::IValue> arguments(stack->end() - op.schema().arguments().size(), stack->end());
  std::string missing;
  if (op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    try {
      op.callBoxed(stack);
      return;
    } catch (const c10::NotImplementedError& error) {
      const std::string text = error.what_without_backtrace();
      std::smatch inner;
      static const std::regex name("[A-Za-z_0-9]+::[A-Za-z_0-9]+(\\.[A-Za-z_0-9]+)?");
      missing = op_name(op);
      if (std::regex_search(text, inner, name) && inner[0] != missing)
        missing += " (of which " + inner[0].str() + " has no meta kernel)";
    }
  } else {
    missing = op_name(op);
  }
  if (is_in_place(op)) {
    *stack = {arguments[0]};
    return;
  }
  // Go on with a guess so that all ops without a shape function are named in one error.
  missing_.insert(missing);
  *stack = guess_results(op, arguments);
}

torch::jit::Stack Recorder::guess_results(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  constexpr int64_t kMaxGuessElements = 1 << 22;
  int64_t elements = 0;
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](const at::Tensor& tensor) { elements += tensor.numel(); });
  if (elements <= kMaxGuessElements) {
    torch::jit::Stack stack;
    for (const c10::IValue& argument : arguments) {
      stack.push_back(map_tensors(argument, [](const at::Tensor& tensor) {
        return tensor.is_meta() ? at::zeros(tensor.sizes(), tensor.options().device(c10::kCPU)) : tensor;
      }));
    }
    try {
      op.callBoxed(&stack);
      for (c10::IValue& result : stack)
        result = map_tensors(result, [](const at::Tensor& tensor) {
          return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
        });
      return stack;
    } catch (const c10::Error&) {
      // No CPU kernel either: the cruder guess below.
    }
  }
  torch::jit::Stack stack;
  at::Tensor like;
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](const at::Tensor& tensor) { like = like.defined() ? like : tensor; });
  for (const c10::Argument& result : op.schema().returns()) {
    const at::Tensor guess =
        like.defined() ? at::empty_like(like, like.options().device(c10::kMeta)) : at::empty({1}, at::device(c10::kMeta));
    if (result.type()->kind() == c10::TypeKind::TensorType)
      stack.emplace_back(guess);
    else if (result.type()->kind() == c10::TypeKind::ListType)
      stack.emplace_back(c10::List<at::Tensor>({guess}));
    else
      stack.emplace_back(int64_t{0});
  }
  return stack;
}

bool Recorder::evaluate(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments,
                        std::vector<c10::IValue>* results) {
  bool all_known = true;
  for (const c10::IValue& argument : arguments)
    for_each_tensor(argument, [&](const at::Tensor& tensor) { all_known = all_known && shadow_of(tensor).defined(); });
  if (!all_known || draws_random_numbers(op, arguments) || op.schema().is_mutable()) return false;
  OutsideCapture outside;
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue value = map_tensors(arguments[i], [&](const at::Tensor& tensor) { return shadow_of(tensor); });
    if (is_device_argument(op.schema().arguments()[i]) && !value.isNone()) value = c10::Device(c10::kCPU);
    stack.push_back(std::move(value));
  }
  try {
    op.callBoxed(&stack);
  } catch (const c10::Error&) {
    return false;  // no CPU kernel: the value is merely not known at compile time
  }
  *results = std::move(stack);
  return true;
}

bool Recorder::fold_constants(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments,
                              torch::jit::Stack* stack) {
  bool scalars = true, real = true;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      real = real && !tensor.is_meta();
      scalars = scalars && tensor.dim() == 0;
    });
  }
  if (!real || draws_random_numbers(op, arguments)) return false;
  if (!scalars && target_.device != "cpu" && !is_data_dependent(op, arguments))
    return false;  // the device's own arithmetic counts
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!is_device_argument(op.schema().arguments()[i]) || arguments[i].isNone()) continue;
    if (target_.device != "cpu") return false;  // a copy to the device
    (*stack)[stack->size() - arguments.size() + i] = c10::Device(c10::kCPU);
  }
  OutsideCapture outside;
  op.callBoxed(stack);
  return true;
}

void Recorder::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  std::vector<c10::IValue> arguments(stack->end() - count, stack->end());

  bool untracked = false;  // functionalization's own shape checks run on meta copies that nothing else sees
  int64_t tensors = 0;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      ++tensors;
      if (tensor.is_meta() && !known(tensor) && !storages_.count(tensor.storage().unsafeGetStorageImpl())) untracked = true;
    });
  }
  if (tensors > 0 && fold_constants(op, arguments, stack)) return;

  // Arguments of the computation: constants become meta twins, devices become meta.
  std::vector<c10::IValue> meta_arguments(count);
  for (size_t i = 0; i < count; ++i) {
    if (is_device_argument(schema.arguments()[i])) {
      meta_arguments[i] = arguments[i].isNone() && tensors > 0 ? c10::IValue() : c10::IValue(c10::Device(c10::kMeta));
      if (!arguments[i].isNone() || tensors == 0) arguments[i] = c10::Device(c10::kMeta);
      continue;
    }
    meta_arguments[i] = map_tensors(arguments[i], [&](const at::Tensor& tensor) {
      if (tensor.is_meta() || tensor.dim() == 0 || untracked) return tensor;
      value_of(tensor);
      return constant_twins_.at(tensor.unsafeGetTensorImpl());
    });
  }
  stack->resize(stack->size() - count);
  torch::jit::Stack work(meta_arguments.begin(), meta_arguments.end());
  if (untracked) {
    compute(op, &work);
    stack->insert(stack->end(), work.begin(), work.end());
    return;
  }

  std::vector<c10::IValue> shadows;
  if (is_data_dependent(op, arguments)) {
    if (!evaluate(op, arguments, &shadows))
      throw CaptureFault(
          Exit::kUnsupported,
          where() + op_name(op) +
              " needs the contents of a tensor that is computed from the step's inputs: the graph depends on data",
          "remove the branch, the .item() or the data-dependent shape, or compile the parts before and after it separately");
    stack->insert(stack->end(), shadows.begin(), shadows.end());
    return;
  }

  Call call;
  call.op = op.operator_name().name;
  call.overload = op.operator_name().overload_name;
  call.backward = backward_;
  call.location = call_location();
  for (size_t i = 0; i < count; ++i) call.args.push_back(argument(arguments[i], schema.arguments()[i]));
  call.rng = draws_random_numbers(op, arguments);
  for (size_t i : mutated_arguments(op, arguments)) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) { call.mutates.push_back(value_of(tensor)); });
  }
  const size_t known_missing = missing_.size();
  compute(op, &work);
  if (work.size() != schema.returns().size())
    throw CaptureFault(Exit::kInternal, where() + op_name(op) + ": its shape function returned " + std::to_string(work.size()) +
                                            " results, its schema has " + std::to_string(schema.returns().size()));
  const bool small = [&] {
    bool all = missing_.size() == known_missing;
    for (const c10::IValue& result : work)
      for_each_tensor(result, [&](const at::Tensor& tensor) { all = all && tensor.numel() <= kMaxShadowElements; });
    return all;
  }();
  const bool evaluated = small && !backward_ && evaluate(op, arguments, &shadows);
  for (size_t i = 0; i < work.size(); ++i) {
    Result result;
    std::vector<at::Tensor> made;
    if (work[i].isTensor()) {
      result.kind = Result::Kind::kTensor;
      if (work[i].toTensor().defined())
        made.push_back(work[i].toTensor());
      else
        result.values.push_back(kNoValue);
    } else if (work[i].isTensorList()) {
      result.kind = Result::Kind::kTensorList;
      made = work[i].toTensorVector();
    } else {
      result.kind = Result::Kind::kOther;
    }
    std::vector<at::Tensor> contents;
    if (evaluated) for_each_tensor(shadows[i], [&](const at::Tensor& tensor) { contents.push_back(tensor); });
    for (size_t j = 0; j < made.size(); ++j) {
      if (!made[j].is_meta())
        throw CaptureFault(Exit::kInternal, where() + op_name(op) + " gave a tensor on " + made[j].device().str() +
                                                " where a meta tensor was expected");
      const ValueId value = known(made[j]) ? value_of(made[j]) : new_value(made[j]);
      result.values.push_back(value);
      if (j < contents.size()) shadows_.emplace(value, contents[j]);
    }
    call.results.push_back(std::move(result));
  }
  graph_.calls.push_back(std::move(call));
  stack->insert(stack->end(), work.begin(), work.end());
}

}  // namespace memscale::capture

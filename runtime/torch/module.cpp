// The C++ API: a planned model without torch::jit. Needs a model.ms.pt; destroys nothing.
#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/include/memscale/memscale.h"
#include "runtime/torch/archive_reader.h"
#include "runtime/torch/autograd.h"

namespace memscale {

using runtime::PlanObject;

struct Module::Impl {
  runtime::LoadedArchive archive;

  const fb::ArgumentT& argument(int32_t index) const { return *archive.plan->plan().arguments[index]; }

  std::vector<std::pair<std::string, at::Tensor>> named(const std::vector<int32_t>& indices,
                                                        const std::vector<at::Tensor>& tensors) const {
    std::vector<std::pair<std::string, at::Tensor>> result;
    for (size_t i = 0; i < indices.size(); ++i) result.emplace_back(argument(indices[i]).name, tensors[i]);
    return result;
  }
};

namespace {

void flatten(const c10::IValue& value, std::vector<at::Tensor>* out) {
  if (value.isTensor()) {
    out->push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const auto& element : value.toTupleRef().elements()) flatten(element, out);
  } else if (value.isList()) {
    for (const auto& element : value.toListRef()) flatten(element, out);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) flatten(entry.value(), out);
  }
  // Anything else is a constant of the plan.
}

std::vector<at::Tensor> flatten(const std::vector<c10::IValue>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const auto& input : inputs) flatten(input, &tensors);
  return tensors;
}

}  // namespace

Module::Module(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::vector<at::Tensor> Module::forward(const std::vector<c10::IValue>& inputs) {
  const auto& archive = impl_->archive;
  const std::string why = archive.plan->guard_mismatch();
  TORCH_CHECK(why.empty(), "memscale: ", why, ". Compile the model for this setting, or change the setting.");
  return runtime::run_plan(archive.plan, archive.parameters, archive.buffers, flatten(inputs));
}

std::string Module::guard_failure(const std::vector<c10::IValue>& inputs) const {
  const auto& archive = impl_->archive;
  const std::string why = archive.plan->guard_mismatch();
  return why.empty() ? archive.plan->argument_mismatch(archive.parameters, archive.buffers, flatten(inputs)) : why;
}

std::vector<at::Tensor> Module::parameters() const { return impl_->archive.parameters; }
std::vector<at::Tensor> Module::buffers() const { return impl_->archive.buffers; }
std::vector<std::pair<std::string, at::Tensor>> Module::named_parameters() const {
  return impl_->named(impl_->archive.plan->parameters(), impl_->archive.parameters);
}
std::vector<std::pair<std::string, at::Tensor>> Module::named_buffers() const {
  return impl_->named(impl_->archive.plan->buffers(), impl_->archive.buffers);
}

std::vector<InputSpec> Module::inputs() const {
  std::vector<InputSpec> specs;
  for (int32_t index : impl_->archive.plan->inputs()) {
    const auto& a = impl_->argument(index);
    specs.push_back({a.name, impl_->archive.plan->argument_dtypes()[index], a.meta->sizes, a.meta->strides});
  }
  return specs;
}

void Module::load(const std::string& name, const at::Tensor& value) {
  auto& archive = impl_->archive;
  const auto find = [&](const std::vector<int32_t>& indices, std::vector<at::Tensor>& tensors) -> at::Tensor* {
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto& a = impl_->argument(indices[i]);
      if (a.name == name || std::count(a.aliases.begin(), a.aliases.end(), name) > 0) return &tensors[i];
    }
    return nullptr;
  };
  at::Tensor* target = find(archive.plan->parameters(), archive.parameters);
  if (target == nullptr) target = find(archive.plan->buffers(), archive.buffers);
  TORCH_CHECK(target != nullptr, "memscale: the model has no parameter or buffer '", name, "'");
  TORCH_CHECK(target->sizes().equals(value.sizes()), "memscale: '", name, "' has sizes ", target->sizes(), ", got ",
              value.sizes());
  at::NoGradGuard no_grad;
  if (target->is_meta()) {
    const bool requires_grad = target->requires_grad();
    at::Tensor made = at::empty_strided(target->sizes(), target->strides(), value.options().dtype(target->scalar_type()));
    *target = made.copy_(value).requires_grad_(requires_grad);
  } else {
    target->copy_(value);
  }
}

std::map<std::string, int64_t> Module::memory_stats() const { return impl_->archive.plan->memory_stats(); }
std::string Module::report() const { return impl_->archive.plan->plan().report; }

Module load(const std::string& path, const LoadOptions& options) {
  auto impl = std::make_shared<Module::Impl>();
  impl->archive = runtime::load_archive(path, options.load_weights);
  const auto& plan = impl->archive.plan->plan();
  const c10::Device device =
      options.device.value_or(c10::Device(plan.target == "cuda" ? c10::DeviceType::CUDA : c10::DeviceType::CPU));
  TORCH_CHECK(c10::DeviceTypeName(device.type(), true) == plan.target, "memscale: '", path, "' was compiled for ", plan.target,
              ", it cannot run on ", device.str());
  const auto move = [&](const std::vector<int32_t>& indices, std::vector<at::Tensor>& tensors) {
    for (size_t i = 0; i < indices.size(); ++i)
      if (options.load_weights && impl->argument(indices[i]).place == fb::Place::Target)
        tensors[i] = tensors[i].detach().to(device).requires_grad_(tensors[i].requires_grad());
  };
  move(impl->archive.plan->parameters(), impl->archive.parameters);
  move(impl->archive.plan->buffers(), impl->archive.buffers);
  return Module(std::move(impl));
}

const char* runtime_version() { return "0.1.0"; }

}  // namespace memscale

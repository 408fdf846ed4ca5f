// Loading a plan, guards, constants and statistics. Needs the plan's bytes; destroys nothing.
#include "runtime/torch/plan_object.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "runtime/core/guards.h"

namespace memscale::runtime {
namespace {

bool device_less(const c10::Device& a, const c10::Device& b) {
  return std::make_pair(a.type(), a.index()) < std::make_pair(b.type(), b.index());
}

/// The device's caching allocator, or null (the CPU, a device without one, or one that was not used yet).
c10::DeviceAllocator* device_allocator(const fb::PlanT& plan) {
  if (plan.target != "cuda") return nullptr;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

}  // namespace

PlanObject::PlanObject(at::Tensor bytes) : constant_cache_(&device_less) {
  TORCH_CHECK(bytes.defined() && bytes.scalar_type() == at::kByte && bytes.dim() == 1 && !bytes.is_meta(),
              "memscale: a plan is made from a one-dimensional uint8 tensor, got ", describe(bytes));
  // A copy of our own: it outlives the archive, FlatBuffers wants it aligned, and torch.jit.load(map_location="cuda") moves it.
  bytes_ = bytes.detach().to(at::kCPU).contiguous().clone();
  at_border([&] {
    plan_ = read_plan(bytes_.const_data_ptr<uint8_t>(), static_cast<size_t>(bytes_.numel()));
    program_ = bind_program(plan_);
    for (size_t i = 0; i < plan_.arguments.size(); ++i) {
      argument_dtypes_.push_back(scalar_type_of(plan_.arguments[i]->meta->dtype));
      const int32_t index = static_cast<int32_t>(i);
      switch (plan_.arguments[i]->role) {
        case fb::Role::Parameter:
          parameters_.push_back(index);
          break;
        case fb::Role::Buffer:
          buffers_.push_back(index);
          break;
        case fb::Role::Input:
          inputs_.push_back(index);
          break;
        case fb::Role::Constant:
          constants_.push_back(index);
          break;
        case fb::Role::Tangent:
          break;
      }
    }
  });
}

std::vector<at::Tensor> PlanObject::constant_tensors(c10::Device device) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto [it, fresh] = constant_cache_.try_emplace(device);
  if (!fresh) return it->second;
  for (int32_t index : constants_) {
    const fb::ArgumentT& a = *plan_.arguments[index];
    at::Tensor tensor = at::empty(a.meta->sizes, at::TensorOptions().dtype(argument_dtypes_[index]));
    if (!a.data.empty()) std::memcpy(tensor.mutable_data_ptr(), a.data.data(), a.data.size());
    if (a.place == fb::Place::Target) tensor = tensor.to(device);
    if (!same_layout(tensor, *a.meta, argument_dtypes_[index], false))
      tensor = at::empty_strided(a.meta->sizes, a.meta->strides, tensor.options()).copy_(tensor);
    if (a.wrapped_number) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    it->second.push_back(std::move(tensor));
  }
  return it->second;
}

c10::Device PlanObject::target_device(at::TensorList parameters, at::TensorList inputs) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (plan_.arguments[parameters_[i]]->place == fb::Place::Target) return parameters[i].device();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (plan_.arguments[inputs_[i]]->place == fb::Place::Target) return inputs[i].device();
  if (plan_.target == "cpu") return c10::Device(c10::DeviceType::CPU);
  return c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->getDevice();
}

std::string PlanObject::argument_mismatch(at::TensorList parameters, at::TensorList buffers, at::TensorList inputs) const {
  const c10::DeviceType target = plan_.target == "cuda" ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  const bool grad_mode = at::GradMode::is_enabled();
  const auto check = [&](at::TensorList given, const std::vector<int32_t>& expected, const char* what) -> std::string {
    if (given.size() != expected.size())
      return std::string("the plan has ") + std::to_string(expected.size()) + " " + what + ", got " +
             std::to_string(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const fb::ArgumentT& a = *plan_.arguments[expected[i]];
      const at::Tensor& t = given[i];
      const auto name = [&] { return std::string(what).substr(0, std::string(what).size() - 1) + " '" + a.name + "'"; };
      if (!same_layout(t, *a.meta, argument_dtypes_[expected[i]], /*with_offset=*/false))
        return name() + " is " + describe(t) + ", the plan expects " + describe(*a.meta);
      const c10::DeviceType device = a.place == fb::Place::Target ? target : c10::DeviceType::CPU;
      if (t.device().type() != device)
        return name() + " is on " + t.device().str() + ", the plan expects it on " + c10::DeviceTypeName(device, true);
      if (grad_mode && t.requires_grad() != a.requires_grad)
        return name() + (a.requires_grad ? " does not require a gradient, the plan expects that it does"
                                         : " requires a gradient, the plan expects that it does not");
    }
    return {};
  };
  std::string why = check(parameters, parameters_, "parameters");
  if (why.empty()) why = check(buffers, buffers_, "buffers");
  if (why.empty()) why = check(inputs, inputs_, "inputs");
  if (why.empty()) why = shared_memory(buffers, inputs);
  return why;
}

std::string PlanObject::shared_memory(at::TensorList buffers, at::TensorList inputs) const {
  const auto storage = [](const at::Tensor& t) -> const void* {
    return t.has_storage() && t.storage().nbytes() > 0 ? t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
                                                       : nullptr;
  };
  const auto name = [&](int32_t index) { return "'" + plan_.arguments[index]->name + "'"; };
  const auto fault = [&](int32_t a, int32_t b) {
    return name(a) + " and " + name(b) + " share memory, and the plan takes each to be written alone";
  };
  const bool any_written = std::any_of(plan_.writebacks.begin(), plan_.writebacks.end(),
                                       [&](const auto& w) { return plan_.arguments[w->argument]->role == fb::Role::Input; });
  for (size_t i = 0; i < inputs.size(); ++i) {
    const void* memory = storage(inputs[i]);
    if (memory == nullptr) continue;
    for (size_t b = 0; b < buffers.size(); ++b)
      if (storage(buffers[b]) == memory) return fault(inputs_[i], buffers_[b]);
    for (size_t j = 0; any_written && j < i; ++j)
      if (storage(inputs[j]) == memory) return fault(inputs_[j], inputs_[i]);
  }
  return {};
}

std::string PlanObject::guard_mismatch() const {
  for (const auto& guard : plan_.guards) {
    std::string present;
    if (!read_guard(guard->name, plan_.target, &present))
      return "the plan has a guard '" + guard->name + "' that this runtime does not know";
    if (present != guard->value) return guard->name + " is '" + present + "', the plan expects '" + guard->value + "'";
  }
  return {};
}

void PlanObject::note_fallback(const std::string& why) {
  if (statistics_.fallbacks.fetch_add(1) == 0)
    TORCH_WARN("memscale: running the original graph instead of the plan, without its memory savings: ", why,
               ". Compile the model for this setting. (Said once per plan; the count is in memory_stats()['fallbacks'].)");
}

std::map<std::string, int64_t> PlanObject::memory_stats() {
  const Statistics& s = statistics_;
  std::map<std::string, int64_t> stats = {
      {"forward_runs", s.forward_runs},
      {"forward_only_runs", s.forward_only_runs},
      {"backward_runs", s.backward_runs},
      {"retained_backward_runs", s.retained_backward_runs},
      {"fallbacks", s.fallbacks},
      {"materialized_tangents", s.materialized_tangents},
      {"restrided_tangents", s.restrided_tangents},
      {"cloned_gradients", s.cloned_gradients},
      {"predicted_peak_bytes", plan_.predicted_peak_bytes},
      {"predicted_eager_peak_bytes", plan_.predicted_eager_peak_bytes},
  };
  if (plan_.target == "cpu") {
    stats["measured_peak_bytes"] = s.peak_bytes;
    stats["measured_region_peak_bytes"] = s.region_peak_bytes;
    stats["measured_static_bytes"] = s.static_bytes;
  } else if (auto* allocator = device_allocator(plan_)) {
    // The device's own high-water mark since its statistics were last reset: other work of the process counts too.
    const auto device = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->getDevice();
    const auto total = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto device_stats = allocator->getDeviceStats(device.index());
    stats["device_peak_allocated_bytes"] = device_stats.allocated_bytes[total].peak;
    stats["device_peak_reserved_bytes"] = device_stats.reserved_bytes[total].peak;
  }
  return stats;
}

}  // namespace memscale::runtime

// Reads the guards from the process. Needs torch; destroys nothing.
#include "runtime/core/guards.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <mutex>

namespace memscale::runtime {
namespace {

c10::DeviceType device_type(const std::string& target) { return target == "cuda" ? c10::DeviceType::CUDA : c10::DeviceType::CPU; }

std::string flag(bool on) { return on ? "1" : "0"; }

/// "2.11.0", from the library that is loaded, not from the headers.
std::string torch_version() {
  static const std::string version = [] {
    const std::string config = at::show_config();
    const std::string key = "TORCH_VERSION=";
    const size_t at = config.find(key);
    if (at == std::string::npos) return std::string("unknown");
    const size_t begin = at + key.size();
    return config.substr(begin, config.find_first_of(", \n", begin) - begin);
  }();
  return version;
}

std::string autocast(const std::string& target) {
  if (!at::autocast::is_autocast_enabled(device_type(target))) return "off";
  switch (at::autocast::get_autocast_dtype(device_type(target))) {
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "f16";
    default:
      return "other";
  }
}

std::string deterministic() {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms()) return "0";
  return context.deterministicAlgorithmsWarnOnly() ? "warn" : "1";
}

std::string attention_backends() {
  const at::Context& context = at::globalContext();
  std::string text;
  const auto add = [&text](bool on, const char* name) {
    if (on) text += (text.empty() ? "" : ",") + std::string(name);
  };
  add(context.userEnabledFlashSDP(), "flash");
  add(context.userEnabledMemEfficientSDP(), "mem_efficient");
  add(context.userEnabledCuDNNSDP(), "cudnn");
  add(context.userEnabledMathSDP(), "math");
  return text.empty() ? "none" : text;
}

/// "sm_90", asked of the driver: the runtime links no CUDA library. The model's name is no part of it: eager picks kernels by
/// capability, and a plan calls what eager calls.
std::string cuda_capability(int ordinal) {
  using Init = int (*)(unsigned);
  using Get = int (*)(int*, int);
  using Attribute = int (*)(int*, int, int);
  void* lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (lib == nullptr) return "none";
  const auto init = reinterpret_cast<Init>(dlsym(lib, "cuInit"));
  const auto get = reinterpret_cast<Get>(dlsym(lib, "cuDeviceGet"));
  const auto attribute = reinterpret_cast<Attribute>(dlsym(lib, "cuDeviceGetAttribute"));
  int device = 0, major = 0, minor = 0;
  if (init == nullptr || get == nullptr || attribute == nullptr || init(0) != 0 || get(&device, ordinal) != 0 ||
      attribute(&major, 75, device) != 0 || attribute(&minor, 76, device) != 0)
    return "none";
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

std::string device(const std::string& target) {
  if (target != "cuda") return "cpu " + at::get_cpu_capability();
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return "none";
  int ordinal = 0;
  try {
    ordinal = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->getDevice().index();
  } catch (const c10::Error&) {
    return "none";  // a CUDA build of torch without a driver
  }
  static std::map<int, std::string>* names = new std::map<int, std::string>;
  static std::mutex* mutex = new std::mutex;
  std::lock_guard<std::mutex> lock(*mutex);
  auto [it, fresh] = names->try_emplace(ordinal);
  if (fresh) it->second = cuda_capability(ordinal);
  return it->second;
}

struct Guard {
  const char* name;
  const char* target;  // empty: every target
  std::string (*read)(const std::string& target);
};

using S = const std::string&;
const Guard kGuards[] = {
    {"torch", "", [](S) { return torch_version(); }},
    {"device", "", device},
    {"autocast", "", autocast},
    {"deterministic", "", [](S) { return deterministic(); }},
    {"attention", "", [](S) { return attention_backends(); }},
    {"threads", "cpu", [](S) { return std::to_string(at::get_num_threads()); }},
    {"onednn", "cpu", [](S) { return flag(at::globalContext().userEnabledMkldnn()); }},
    {"cudnn", "cuda", [](S) { return flag(at::globalContext().userEnabledCuDNN()); }},
};

}  // namespace

std::map<std::string, std::string> capture_guards(const std::string& target) {
  std::map<std::string, std::string> values;
  for (const Guard& guard : kGuards)
    if (*guard.target == '\0' || target == guard.target) values[guard.name] = guard.read(target);
  // A plan for a device that this machine lacks: what the device is called stands in the target's profile, not here.
  if (values["device"] == "none") values.erase("device");
  return values;
}

bool read_guard(const std::string& name, const std::string& target, std::string* value) {
  for (const Guard& guard : kGuards)
    if (name == guard.name) {
      *value = guard.read(target);
      return true;
    }
  return false;
}

NumericSettings numeric_settings() {
  const at::Context& context = at::globalContext();
  NumericSettings settings;
  // Both throw once a program has mixed torch's old and new precision settings.
  try {
    settings.matmul_precision = static_cast<int>(context.float32MatmulPrecision());
    settings.tf32_cudnn = context.allowTF32CuDNN();
  } catch (const c10::Error&) {
  }
  settings.fp16_reduction = static_cast<int>(context.allowFP16ReductionCuBLAS());
  settings.bf16_reduction = static_cast<int>(context.allowBF16ReductionCuBLAS());
  settings.fp16_accumulation = context.allowFP16AccumulationCuBLAS();
  settings.deterministic = context.deterministicAlgorithms();
  settings.cudnn_deterministic = context.deterministicCuDNN();
  settings.cudnn_benchmark = context.benchmarkCuDNN();
  return settings;
}

}  // namespace memscale::runtime

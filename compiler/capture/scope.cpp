// Installs the capture in the dispatcher: fallbacks for the process, keys for the thread. Everything is taken back at the end.
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <mutex>

#include "compiler/capture/lowering.h"
#include "compiler/capture/recorder.h"

namespace memscale::capture {
namespace {

std::mutex& process_lock() {
  static std::mutex lock;
  return lock;
}

thread_local Recorder* active_recorder = nullptr;

constexpr auto kFront = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr auto kBack = c10::DispatchKey::Fake;

/// Ops with a kernel on CPU and CUDA and a decomposition for the rest, which meta tensors would take. Of backward alone: they
/// have no derivative to keep.
bool is_opaque(const c10::OperatorHandle& op) { return op.operator_name().name == "aten::mish_backward"; }

void record_opaque(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  namespace functional = at::functionalization::impl;
  const size_t count = op.schema().arguments().size();
  torch::jit::Stack work;
  for (const c10::IValue& argument : torch::jit::last(*stack, count)) {
    if (argument.isTensor() && functional::isFunctionalTensor(argument.toTensor())) {
      functional::sync(argument.toTensor());
      work.emplace_back(functional::from_functional_tensor(argument.toTensor()));
    } else {
      work.push_back(argument);
    }
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    active_recorder->call(op, &work);
  }
  torch::jit::drop(*stack, count);
  for (const c10::IValue& result : work) stack->emplace_back(functional::to_functional_tensor(result.toTensor()));
}

void front(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const bool above_autograd = !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality);
  if (active_recorder && above_autograd) {
    try {
      if (lower_for_target(op, stack, active_recorder->target(), active_recorder->warnings())) return;
    } catch (const CaptureFault& fault) {
      throw CaptureFault(fault.code, active_recorder->where() + fault.what(), fault.help);
    }
  }
  if (active_recorder && is_opaque(op)) return record_opaque(op, stack);
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kFront), stack);
}

void back(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (!active_recorder) {
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kBack), stack);
    return;
  }
  active_recorder->call(op, stack);
}

}  // namespace

struct CaptureScope::State {
  State()
      : lock(process_lock()),
        front_library(torch::Library::IMPL, "_", kFront, __FILE__, __LINE__),
        back_library(torch::Library::IMPL, "_", kBack, __FILE__, __LINE__),
        views(true),
        include(c10::DispatchKeySet({kFront, c10::DispatchKey::Functionalize, kBack})) {
    front_library.fallback(torch::CppFunction::makeFromBoxedFunction<&front>());
    back_library.fallback(torch::CppFunction::makeFromBoxedFunction<&back>());
  }

  std::unique_lock<std::mutex> lock;
  torch::Library front_library;
  torch::Library back_library;
  at::functionalization::impl::FunctionalizationReapplyViewsGuard views;
  c10::impl::IncludeDispatchKeyGuard include;
};

CaptureScope::CaptureScope(Recorder& recorder) : state_(std::make_unique<State>()) { active_recorder = &recorder; }

CaptureScope::~CaptureScope() { active_recorder = nullptr; }

}  // namespace memscale::capture

// The interpreter: boxed calls below autograd, registers, frees, generator states, layout checks.
// Needs a bound plan and a state whose argument registers are filled; destroys registers as the plan says.
#include "runtime/core/executor.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <mutex>

namespace memscale::runtime {
namespace {

at::Generator default_generator(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

at::Generator clone_locked(at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.clone();
}

/// Copies the stream position of `from` to `to`. A CPU generator also caches half of a Box-Muller pair.
void copy_generator(const at::Generator& from, at::Generator to) {
  std::lock_guard<std::mutex> lock(to.mutex());
  if (from.device().is_cpu()) {
    auto* source = from.get<at::CPUGeneratorImpl>();
    auto* target = to.get<at::CPUGeneratorImpl>();
    target->set_engine(source->engine());
    target->set_next_float_normal_sample(source->next_float_normal_sample());
    target->set_next_double_normal_sample(source->next_double_normal_sample());
    return;
  }
  to.set_current_seed(from.current_seed());
  to.set_offset(from.get_offset());
}

/// Runs the default generator from `state` for a scope and puts it back afterwards, on exceptions too.
class GeneratorSwap {
 public:
  GeneratorSwap(at::Generator generator, const at::Generator& state)
      : generator_(std::move(generator)), saved_(clone_locked(generator_)) {
    copy_generator(state, generator_);
  }
  ~GeneratorSwap() { copy_generator(saved_, generator_); }
  GeneratorSwap(const GeneratorSwap&) = delete;
  GeneratorSwap& operator=(const GeneratorSwap&) = delete;

 private:
  at::Generator generator_;
  at::Generator saved_;
};

/// Where a random call draws: where its first tensor is, else where it makes its result.
c10::Device generator_device(const Instruction& instr, const CallState& state) {
  for (const ArgSource& arg : instr.args)
    if (arg.kind == ArgSource::kTensor && state.registers[arg.index].defined()) return state.registers[arg.index].device();
  return instr.on_host ? c10::Device(c10::DeviceType::CPU) : state.target;
}

c10::IValue tensor_list(const CallState& state, const std::vector<int32_t>& regs) {
  c10::List<at::Tensor> list;
  list.reserve(regs.size());
  for (int32_t reg : regs) list.push_back(state.registers[reg]);
  return list;
}

c10::IValue optional_tensor_list(const CallState& state, const std::vector<int32_t>& regs) {
  c10::List<std::optional<at::Tensor>> list;
  list.reserve(regs.size());
  for (int32_t reg : regs) list.push_back(reg == -1 ? std::nullopt : std::optional<at::Tensor>(state.registers[reg]));
  return list;
}

void check_layouts(const fb::PlanT& plan, const Instruction& instr, const CallState& state) {
  size_t at = 0;
  for (const auto& result : instr.results)
    for (int32_t reg : result.regs) {
      if (reg == -1) continue;
      const fb::TensorMetaT& expected = instr.layouts[at++];
      if (!same_layout(state.registers[reg], expected, scalar_type_of(expected.dtype), /*with_offset=*/true))
        throw PlanError(
            Fault::kMismatch,
            "memscale: " + describe_instruction(plan, instr) + " gave " + describe(state.registers[reg]) + ", the plan expects " +
                describe(expected) + ". The plan was made for another torch build or device than this one (plan: torch " +
                plan.torch_version + ", target " + plan.target_profile + "); compile the model again for this machine.");
    }
}

/// The instruction's results from the stack into the registers.
void take_results(const fb::PlanT& plan, const Instruction& instr, std::vector<c10::IValue>& stack, CallState& state) {
  for (size_t r = 0; r < instr.results.size(); ++r) {
    const auto& regs = instr.results[r].regs;
    switch (instr.results[r].kind) {
      case fb::ResultKind::Tensor:
        if (regs[0] != -1) state.registers[regs[0]] = std::move(stack[r]).toTensor();
        break;
      case fb::ResultKind::TensorList: {
        const std::vector<at::Tensor> list = std::move(stack[r]).toTensorVector();
        if (list.size() != regs.size())
          throw PlanError(Fault::kMismatch, "memscale: " + describe_instruction(plan, instr) + " gave " +
                                                std::to_string(list.size()) + " tensors, the plan expects " +
                                                std::to_string(regs.size()) + ".");
        for (size_t k = 0; k < list.size(); ++k)
          if (regs[k] != -1) state.registers[regs[k]] = list[k];
        break;
      }
      case fb::ResultKind::Other:
        break;
    }
  }
}

}  // namespace

void run_instructions(const fb::PlanT& plan, const Program& program, const std::vector<Instruction>& list, size_t begin,
                      size_t end, CallState& state, const RunOptions& options) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  // The plan's casts are explicit calls already; autocast must not cast again, in forward or in recomputation.
  c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset);
  const bool grad_mode = c10::GradMode::is_enabled();
  struct RestoreGradMode {
    bool value;
    ~RestoreGradMode() { c10::GradMode::set_enabled(value); }
  } restore{grad_mode};
  bool recomputing = false;

  std::vector<c10::IValue> stack;
  stack.reserve(32);
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instr = list[i];
    if (instr.recompute != recomputing) {
      // Some kernels look at grad mode: a recomputed forward call must see what the forward call saw.
      recomputing = instr.recompute;
      c10::GradMode::set_enabled(recomputing || grad_mode);
    }
    stack.clear();
    c10::IValue generator;
    std::optional<GeneratorSwap> swap;
    if (instr.rng_save != -1 || instr.rng_replay != -1) {
      const at::Generator present = default_generator(generator_device(instr, state));
      if (instr.rng_save != -1)
        state.slots[instr.rng_save] = clone_locked(present);
      else if (instr.takes_generator)
        generator = state.slots[instr.rng_replay].clone();
      else
        swap.emplace(present, state.slots[instr.rng_replay]);
    }
    for (const ArgSource& arg : instr.args) {
      switch (arg.kind) {
        case ArgSource::kConstant:
          stack.push_back(program.constants[arg.index]);
          break;
        case ArgSource::kTensor:
          stack.emplace_back(state.registers[arg.index]);
          break;
        case ArgSource::kTensorList:
          stack.push_back(tensor_list(state, program.register_lists[arg.index]));
          break;
        case ArgSource::kOptionalTensorList:
          stack.push_back(optional_tensor_list(state, program.register_lists[arg.index]));
          break;
        case ArgSource::kTargetDevice:
          stack.emplace_back(state.target);
          break;
        case ArgSource::kGenerator:
          stack.push_back(generator);
          break;
      }
    }
    try {
      instr.op.callBoxed(stack);
    } catch (c10::Error& e) {
      e.add_context("memscale: in " + describe_instruction(plan, instr));
      throw;
    }
    swap.reset();
    take_results(plan, instr, stack, state);
    stack.clear();
    if (options.check_layouts && !instr.layouts.empty()) check_layouts(plan, instr, state);
    for (int32_t reg : options.forward_only ? instr.forward_only_frees : instr.frees) state.registers[reg].reset();
  }
}

}  // namespace memscale::runtime

// A plan bound to the operators of this process: schemas resolved, constant arguments built, register lifetimes known.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/reader.h"

namespace memscale::runtime {

/// Where the value of one schema argument comes from.
struct ArgSource {
  enum Kind : uint8_t { kConstant, kTensor, kTensorList, kOptionalTensorList, kTargetDevice, kGenerator } kind = kConstant;
  int32_t index = -1;  // kConstant: of constants; kTensor: register; lists: of register_lists
};

struct Instruction {
  explicit Instruction(c10::OperatorHandle handle) : op(std::move(handle)) {}
  c10::OperatorHandle op;
  std::vector<ArgSource> args;
  std::vector<fb::ResultT> results;
  std::vector<int32_t> frees;
  std::vector<int32_t> forward_only_frees;  // when no backward will follow; includes `frees`
  std::vector<fb::TensorMetaT> layouts;
  int32_t rng_save = -1;
  int32_t rng_replay = -1;
  bool takes_generator = false;
  bool on_host = false;  // draws from the host's generator though the target is an accelerator
  bool recompute = false;
  uint32_t location = 0;
};

/// An argument or output whose memory a segment reads through saved registers: it must not have been changed in place since.
struct VersionCheck {
  enum Kind : uint8_t { kArgument, kOutput } kind;
  int32_t index;
};

struct Segment {
  std::string name;
  uint32_t begin = 0, end = 0;
  struct Gradient {
    int32_t argument;
    int32_t reg;
    bool last_use;  // nothing reads the register afterwards
  };
  std::vector<Gradient> gradients;
  std::vector<int32_t> frees;
  std::vector<VersionCheck> checks;
};

struct Program {
  std::vector<c10::IValue> constants;
  std::vector<std::vector<int32_t>> register_lists;
  std::vector<Instruction> forward, backward;
  std::vector<Segment> segments;
  bool recomputes = false;                     // backward runs parts of forward again
  std::vector<int32_t> live_into_backward;     // registers, sorted
  std::vector<int32_t> output_argument;        // per output: the argument whose memory it shows, or -1
  std::vector<int32_t> output_alias;           // per output: the first output that shows the same memory
  std::vector<bool> output_escapes;            // per output: shares memory with something that backward reads
  std::vector<bool> tangent_used;              // per output: backward reads its tangent
  std::vector<bool> writeback_reads_written;   // per write-back: its value shows an argument that an earlier one overwrites
  std::vector<int32_t> copy_before_writeback;  // registers that backward reads and a write-back would change
};

/// The torch dtype of a plan dtype. Throws PlanError.
at::ScalarType scalar_type_of(const std::string& dtype);
std::string describe(const fb::TensorMetaT& meta);
std::string describe(const at::Tensor& tensor);
/// Same dtype, sizes and (where they matter) strides; `offset` too if asked.
bool same_layout(const at::Tensor& tensor, const fb::TensorMetaT& meta, at::ScalarType dtype, bool with_offset);

/// Resolves a checked plan. Throws PlanError: unknown operator, arguments that do not fit its schema.
Program bind_program(const fb::PlanT& plan);

/// "aten::mm.out at model.py:12 (layers.3)".
std::string describe_instruction(const fb::PlanT& plan, const Instruction& instruction);

}  // namespace memscale::runtime

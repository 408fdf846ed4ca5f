// The captured training step: forward and backward as one list of ATen calls.
//
// Plain C++20: this header is the border between the torch-facing libraries (import, capture) and everything that plans.
// Every tensor of the step is a Value; values that share memory name the same Storage. Calls are in eager's order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace memscale::capture {

using ValueId = int32_t;
using StorageId = int32_t;
constexpr ValueId kNoValue = -1;  // an absent optional tensor, or an undefined result

/// Where a tensor lives. `kTarget` is the accelerator (or RAM for the CPU target), `kHost` a CPU tensor beside a CUDA target.
enum class Place : uint8_t { kTarget, kHost };

/// One tensor. Sizes and strides are in elements, as `Tensor.sizes()` and `Tensor.strides()` give them.
struct Value {
  std::string dtype;  // "f32" "f64" "f16" "bf16" "i64" "i32" "i16" "i8" "u8" "bool" "c64" "c128" "f8e4m3fn" "f8e5m2"
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // storage offset, in elements
  StorageId storage = -1;
  Place place = Place::kTarget;
  bool conjugated = false, negated = false;  // lazily: the memory holds the conjugate, the negative
};

/// One block of memory. `bytes` is what ATen asks the allocator for, before rounding.
struct Storage {
  int64_t bytes = 0;
  Place place = Place::kTarget;
};

struct None {
  bool operator==(const None&) const = default;
};
/// A tensor operand (kNoValue never occurs here: an absent tensor is None).
struct Operand {
  ValueId value;
  bool operator==(const Operand&) const = default;
};
/// A tensor list operand; kNoValue entries are absent elements of `Tensor?[]`.
struct OperandList {
  std::vector<ValueId> values;
  bool operator==(const OperandList&) const = default;
};
struct Complex {
  double re, im;
  bool operator==(const Complex&) const = default;
};
/// A device argument: the target's own device, or the host.
struct DeviceArg {
  Place place;
  bool operator==(const DeviceArg&) const = default;
};
/// An argument as the boxed calling convention has it: dtypes, layouts and memory formats are their integer codes there.
using Arg = std::variant<None, Operand, OperandList, int64_t, double, bool, std::string, Complex, DeviceArg, std::vector<int64_t>,
                         std::vector<double>, std::vector<bool>>;

/// One schema result: a tensor, a tensor list, or something that is no tensor (dropped: its value was folded at capture).
struct Result {
  enum class Kind : uint8_t { kTensor, kTensorList, kOther } kind = Kind::kTensor;
  std::vector<ValueId> values;  // one entry for kTensor (kNoValue if undefined), any number for kTensorList, none for kOther
};

struct Location {
  std::string file;  // empty if unknown
  int32_t line = 0;
  std::string module_path;  // "transformer.h.3.attn", empty for the root module
};

struct Call {
  std::string op;               // "aten::addmm"
  std::string overload;         // "" or "out", "Tensor", ...
  std::vector<Arg> args;        // one for each schema argument, in schema order
  std::vector<Result> results;  // one for each schema return
  bool backward = false;
  bool rng = false;              // draws from the generator: an effect, in eager's order
  bool accumulation = false;     // adds its second operand to the gradient that a leaf has received so far: autograd's own work
  std::vector<ValueId> mutates;  // operands whose memory the call writes (hidden mutation included); such a call runs once
  int64_t workspace_bytes = -1;  // what the kernel allocates beside its results while it runs, where measured; -1: unknown
  Location location;             // of the forward call that it is or belongs to
};

/// Calls visit(value) for every tensor operand that is there, in schema order.
template <class F>
void for_each_operand(const Call& call, F&& visit) {
  for (const Arg& arg : call.args) {
    if (const auto* operand = std::get_if<Operand>(&arg)) visit(operand->value);
    if (const auto* list = std::get_if<OperandList>(&arg))
      for (const ValueId value : list->values)
        if (value != kNoValue) visit(value);
  }
}

enum class Role : uint8_t { kParameter, kBuffer, kInput, kTangent, kConstant };

/// A value that exists before the step: an argument of it.
struct Argument {
  Role role;
  std::string name;                  // fully qualified name of a parameter or buffer, name of an input, output name of a tangent
  std::vector<std::string> aliases;  // further qualified names of the same (tied) tensor
  ValueId value = kNoValue;
  bool requires_grad = false;
  bool persistent = true;       // buffers: part of the state_dict
  std::string data;             // constants: the raw bytes, contiguous, in host byte order
  bool wrapped_number = false;  // constants: a 0-d tensor that stands for a Python number (weak type promotion)
};

struct Output {
  ValueId value = kNoValue;  // may be an argument's value, or a view of one
  bool requires_grad = false;
  ValueId tangent = kNoValue;  // the argument that carries its incoming gradient; kNoValue: not differentiated by this plan
};

/// The gradient that backward hands to one argument (a parameter or an input that requires it).
struct Gradient {
  ValueId argument = kNoValue;
  ValueId value = kNoValue;  // kNoValue: undefined, the argument gets no gradient
};

/// A buffer (or input) whose new contents are `value` at the end of forward: the runtime copies it there.
struct Writeback {
  ValueId argument = kNoValue;
  ValueId value = kNoValue;
};

struct Graph {
  std::string target;  // "cpu" or "cuda"
  std::vector<Value> values;
  std::vector<Storage> storages;
  std::vector<Argument> arguments;
  std::vector<Call> calls;
  size_t backward_begin = 0;  // index of the first backward call; all calls before it are forward
  std::vector<Output> outputs;
  std::vector<Gradient> gradients;
  std::vector<Writeback> writebacks;
  std::string input_structure;  // JSON, see docs/formats/plan.md
  std::string output_structure;
  std::map<std::string, std::string> guards;  // name → value, as the runtime's guard reader spells them
  std::vector<std::string> warnings;          // what the archive lost, what was assumed: reported to the user
};

}  // namespace memscale::capture

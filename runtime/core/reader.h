// Reads and checks plans. No torch here: the compiler's tools and the runtime share it.
//
// A plan may come from anywhere: every count, index, register and enum is checked before anything uses it, and the flow of
// registers is simulated once, so that the executor needs no checks of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan_generated.h"

namespace memscale::runtime {

/// What is wrong with a plan, or with the way it is used.
enum class Fault {
  kBroken,       // not a plan, or one that contradicts itself
  kVersion,      // written for another version of the format, of torch, or of an operator
  kMismatch,     // the arguments are not those that the plan was made for
  kState,        // used in an order that the plan does not allow
  kUnsupported,  // asks for something that this runtime does not do
};

/// The reader's and the executor's error. At the border to torch it becomes a c10::Error with the same text.
class PlanError : public std::runtime_error {
 public:
  PlanError(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

constexpr uint32_t kPlanVersion = 1;

/// Bytes of one element of a plan dtype ("f32"); 0 if the name is unknown.
int64_t dtype_bytes(const std::string& dtype);

/// Elements from the storage's start that a tensor reaches (offset included). Throws on overflow or negative sizes.
int64_t extent_elements(const fb::TensorMetaT& meta);

/// Parses and checks a plan. Throws PlanError.
fb::PlanT read_plan(const uint8_t* data, size_t size);

/// The checks alone: read_plan does them, and writers may. Throws PlanError.
void check_plan(const fb::PlanT& plan);

/// The bytes of a plan, with the file identifier.
std::vector<uint8_t> write_plan(const fb::PlanT& plan);

}  // namespace memscale::runtime

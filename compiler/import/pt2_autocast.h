// What autocast does to one op: which operands are cast, to what. The rules are those of LibTorch's autocast kernels, applied
// when the archive is read, so that every later part sees plain casts. Needs LibTorch's dispatcher, which says which ops have an
// autocast kernel. Destroys nothing.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <optional>

namespace memscale::import {

enum class CastPolicy {
  kNone,        // operands stay
  kLower,       // floating operands to the region's dtype
  kFloat,       // floating operands to f32
  kFloatDtype,  // an absent dtype argument becomes f32
  kPromote,     // floating operands to the widest dtype among them
  kRefuse,      // eager would raise, or the op's own decomposition meets autocast again
};

/// The policy of an op under autocast of one device type (cpu or cuda).
CastPolicy cast_policy(const c10::FunctionSchema& schema, c10::DeviceType device);

/// One entered region of autocast.
struct Autocast {
  c10::DeviceType device;
  c10::ScalarType dtype;
  bool enabled;
  bool cache;  // casts of parameters are made once
};

}  // namespace memscale::import

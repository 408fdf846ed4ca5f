// Checks what a TorchScript pickle claims about tensors, without unpickling it: LibTorch believes the element count of a storage
// and the sizes and strides of a tensor, and would read past the record that holds the bytes.
// Needs the checked zip archive; no torch. Destroys nothing, builds nothing, calls nothing.
#pragma once

#include <map>
#include <string>

#include "compiler/support/error.h"

namespace memscale::import {

struct PickleClaims {
  std::map<std::string, int64_t> record_bytes;  // by storage key: bytes of the record "data/<key>"
  std::map<std::string, int64_t> item_bytes;    // by storage class: "FloatStorage" → 4
};

/// Errors: kUnsafe (a claim beyond its record, broken opcodes), kUnsupported (a storage class that is not known).
Expected<Success> check_pickle(const std::string& bytes, const std::string& record, const PickleClaims& claims);

}  // namespace memscale::import

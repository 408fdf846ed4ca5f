// Dtypes, layouts, devices and tensor descriptions as torch.export writes them. Needs c10; destroys nothing.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "compiler/import/pt2_json.h"

namespace memscale::import {

/// torch.export's own codes, which are not c10's.
at::ScalarType scalar_type_of(const Json& code);
at::Layout layout_of(const Json& code);
at::MemoryFormat memory_format_of(const Json& code);
/// "meta" is read as "cpu": a program exported on the meta device means the device the model will live on.
at::Device device_of(const Json& device);

struct TensorMeta {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes, strides;  // empty and `dynamic` if a size is symbolic
  int64_t offset = 0;
  bool requires_grad = false;
  bool dynamic = false;
  bool on_meta = false;
  std::string device;  // "cpu", "cuda", ...
  /// Bytes of storage that the layout needs.
  int64_t storage_bytes = 0;
};

/// Checks signs and overflow. Errors: kUnsafe, kUnsupported (a layout other than strided).
TensorMeta tensor_meta_of(const Json& meta, const std::string& who);

/// The value of a SymInt or SymIntArgument if it is constant.
std::optional<int64_t> constant_int(const Json& sym);

}  // namespace memscale::import

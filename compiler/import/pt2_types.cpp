// Code tables of torch.export's schema 8 and checks of tensor descriptions. Needs c10; destroys nothing.
#include "compiler/import/pt2_types.h"

#include <optional>

namespace memscale::import {

at::ScalarType scalar_type_of(const Json& code) {
  int64_t value = integer_of(code, "scalar type");
  switch (value) {
    case 1:
      return at::kByte;
    case 2:
      return at::kChar;
    case 3:
      return at::kShort;
    case 4:
      return at::kInt;
    case 5:
      return at::kLong;
    case 6:
      return at::kHalf;
    case 7:
      return at::kFloat;
    case 8:
      return at::kDouble;
    case 9:
      return at::kComplexHalf;
    case 10:
      return at::kComplexFloat;
    case 11:
      return at::kComplexDouble;
    case 12:
      return at::kBool;
    case 13:
      return at::kBFloat16;
    case 28:
      return at::kUInt16;
    case 29:
      return at::kFloat8_e4m3fn;
    case 30:
      return at::kFloat8_e5m2;
    case 31:
      return at::kFloat8_e4m3fnuz;
    case 32:
      return at::kFloat8_e5m2fnuz;
    default:
      fail(Exit::kUnsupported, "scalar type code " + std::to_string(value) + " of the exported program is not known");
  }
}

at::Layout layout_of(const Json& code) {
  int64_t value = integer_of(code, "layout");
  switch (value) {
    case 1:
      return at::kSparse;
    case 2:
      return at::kSparseCsr;
    case 3:
      return at::kSparseCsc;
    case 4:
      return at::kSparseBsr;
    case 5:
      return at::kSparseBsc;
    case 6:
      return at::kMkldnn;
    case 7:
      return at::kStrided;
    default:
      fail(Exit::kUnsupported, "layout code " + std::to_string(value) + " of the exported program is not known");
  }
}

at::MemoryFormat memory_format_of(const Json& code) {
  int64_t value = integer_of(code, "memory format");
  switch (value) {
    case 1:
      return at::MemoryFormat::Contiguous;
    case 2:
      return at::MemoryFormat::ChannelsLast;
    case 3:
      return at::MemoryFormat::ChannelsLast3d;
    case 4:
      return at::MemoryFormat::Preserve;
    default:
      fail(Exit::kUnsupported, "memory format code " + std::to_string(value) + " of the exported program is not known");
  }
}

at::Device device_of(const Json& device) {
  const std::string& type = text_of(member(device, "type"), "device type");
  const Json* index = find_member(device, "index");
  if (type == "cpu" || type == "meta") return at::Device(at::kCPU);
  if (type == "cuda") {
    int64_t i = index == nullptr ? -1 : integer_of(*index, "device index");
    if (i < -1 || i > 127) broken("device index " + std::to_string(i));
    return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(i));
  }
  fail(Exit::kUnsupported, "the exported program names the device '" + type + "': expected cpu, cuda or meta",
       "move the model to the cpu before exporting it");
}

std::optional<int64_t> constant_int(const Json& sym) {
  auto [kind, value] = union_of(sym, "an integer");
  if (kind == "as_int") return integer_of(value, "an integer");
  return std::nullopt;
}

TensorMeta tensor_meta_of(const Json& meta, const std::string& who) {
  TensorMeta t;
  t.dtype = scalar_type_of(member(meta, "dtype"));
  t.device = text_of(member(member(meta, "device"), "type"), "device type");
  t.on_meta = t.device == "meta";
  t.requires_grad = boolean_of(member(meta, "requires_grad"), "requires_grad");
  if (layout_of(member(meta, "layout")) != at::kStrided) {
    fail(Exit::kUnsupported, "'" + who + "' is no strided tensor",
         "sparse and mkldnn tensors are not planned: convert them with .to_dense()");
  }
  for (const char* field : {"sizes", "strides"}) {
    std::vector<int64_t>& list = field[1] == 'i' ? t.sizes : t.strides;
    for (const Json& entry : array_of(member(meta, field), field)) {
      std::optional<int64_t> value = constant_int(entry);
      if (!value) {
        t.dynamic = true;
        list.push_back(0);
        continue;
      }
      if (*value < 0) broken("'" + who + "' has a negative entry in its " + field);
      list.push_back(*value);
    }
  }
  if (t.sizes.size() != t.strides.size())
    broken("'" + who + "' has " + std::to_string(t.sizes.size()) + " sizes but " + std::to_string(t.strides.size()) + " strides");
  if (t.sizes.size() > 64) broken("'" + who + "' has more than 64 dimensions");
  std::optional<int64_t> offset = constant_int(member(meta, "storage_offset"));
  t.dynamic |= !offset.has_value();
  t.offset = offset.value_or(0);
  if (t.offset < 0) broken("'" + who + "' has a negative storage offset");
  if (t.dynamic) {
    t.sizes.clear();
    t.strides.clear();
    return t;
  }
  int64_t elements = 1, last = t.offset;
  bool overflow = false;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(elements, t.sizes[d], &elements);
    if (t.sizes[d] > 0)
      overflow |= __builtin_mul_overflow(t.sizes[d] - 1, t.strides[d], &reach) || __builtin_add_overflow(last, reach, &last);
  }
  int64_t item = static_cast<int64_t>(c10::elementSize(t.dtype)), ends = 0;
  overflow |= __builtin_add_overflow(last, 1, &ends) || __builtin_mul_overflow(elements == 0 ? 0 : ends, item, &t.storage_bytes);
  int64_t ignored = 0;
  overflow |= __builtin_mul_overflow(elements, item, &ignored);
  if (overflow) broken("'" + who + "' is larger than 64 bits can count");
  return t;
}

}  // namespace memscale::import

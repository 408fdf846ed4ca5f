// Parsing of --shape.
#include "compiler/driver/shape.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "compiler/driver/suggest.h"

namespace memscale::driver {
namespace {

struct DtypeName {
  std::string_view given, dtype;
};

// The first spelling of each dtype is the one that is printed.
constexpr DtypeName kDtypes[] = {
    {"float32", "f32"},
    {"float", "f32"},
    {"f32", "f32"},
    {"fp32", "f32"},
    {"float64", "f64"},
    {"double", "f64"},
    {"f64", "f64"},
    {"float16", "f16"},
    {"half", "f16"},
    {"f16", "f16"},
    {"fp16", "f16"},
    {"bfloat16", "bf16"},
    {"bf16", "bf16"},
    {"int64", "i64"},
    {"long", "i64"},
    {"i64", "i64"},
    {"int32", "i32"},
    {"int", "i32"},
    {"i32", "i32"},
    {"int16", "i16"},
    {"short", "i16"},
    {"i16", "i16"},
    {"int8", "i8"},
    {"i8", "i8"},
    {"uint8", "u8"},
    {"byte", "u8"},
    {"u8", "u8"},
    {"bool", "bool"},
    {"uint16", "u16"},
    {"u16", "u16"},
    {"uint32", "u32"},
    {"u32", "u32"},
    {"uint64", "u64"},
    {"u64", "u64"},
    {"complex64", "c64"},
    {"c64", "c64"},
    {"complex128", "c128"},
    {"c128", "c128"},
    {"float8_e4m3fn", "f8e4m3fn"},
    {"f8e4m3fn", "f8e4m3fn"},
    {"float8_e5m2", "f8e5m2"},
    {"f8e5m2", "f8e5m2"},
};

Error wrong(const std::string& text, const std::string& what) {
  return {
      Exit::kUsage, "--shape '" + text + "': " + what,
      "NAME=SIZExSIZE:DTYPE, for example --shape ids=8x128:int64; --shape 'step=():int64' for a scalar, :grad at the end for an "
      "input that requires grad"};
}

bool parse_sizes(std::string_view text, std::vector<int64_t>& sizes) {
  if (text == "()") return true;
  int64_t elements = 1;
  while (true) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end == text.data() || size < 0 || text.front() == '-') return false;
    if (size > 0 && __builtin_mul_overflow(elements, size, &elements)) return false;
    if (elements > (int64_t{1} << 56)) return false;
    sizes.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text.front() != 'x') return false;
    text.remove_prefix(1);
  }
}

}  // namespace

Expected<capture::InputSpec> parse_shape(const std::string& text) {
  capture::InputSpec spec;
  std::string rest = text;
  if (const size_t equals = text.find('='); equals != std::string::npos) {
    spec.name = text.substr(0, equals);
    rest = text.substr(equals + 1);
    if (spec.name.empty()) return wrong(text, "the name before '=' is empty");
  }
  std::vector<std::string> parts(1);
  for (char c : rest) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (!parse_sizes(parts[0], spec.sizes)) {
    return wrong(text, "expected sizes such as 8x128 or (), found '" + parts[0] + "'");
  }
  size_t used = 1;
  if (used < parts.size() && parts[used] != "grad") {
    const std::string& name = parts[used++];
    spec.dtype.clear();
    std::vector<std::string_view> names;
    for (const DtypeName& d : kDtypes) {
      if (d.given == name) spec.dtype = d.dtype;
      names.push_back(d.given);
    }
    if (spec.dtype.empty()) {
      const std::string near = nearest(name, names);
      return wrong(text, "unknown dtype '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
  if (used < parts.size() && parts[used] == "grad") {
    spec.requires_grad = true;
    ++used;
  }
  if (used != parts.size()) return wrong(text, "'" + parts[used] + "' is neither a dtype nor 'grad' in its place");
  return spec;
}

std::string print_shape(const capture::InputSpec& spec) {
  std::string text;
  if (!spec.name.empty()) text.append(spec.name).append("=");
  if (spec.sizes.empty()) text.append("()");
  for (size_t i = 0; i < spec.sizes.size(); ++i) text.append(i == 0 ? "" : "x").append(std::to_string(spec.sizes[i]));
  return text.append(":").append(torch_dtype_name(spec.dtype)).append(spec.requires_grad ? ":grad" : "");
}

std::string torch_dtype_name(const std::string& dtype) {
  for (const DtypeName& d : kDtypes) {
    if (d.dtype == dtype) return std::string(d.given);
  }
  return dtype;
}

}  // namespace memscale::driver

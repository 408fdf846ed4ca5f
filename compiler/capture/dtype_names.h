// Names of the element types as the captured graph and the plan spell them.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <utility>

namespace memscale::capture {

inline constexpr std::pair<c10::ScalarType, const char*> kDtypeNames[] = {
    {c10::kFloat, "f32"},
    {c10::kDouble, "f64"},
    {c10::kHalf, "f16"},
    {c10::kBFloat16, "bf16"},
    {c10::kLong, "i64"},
    {c10::kInt, "i32"},
    {c10::kShort, "i16"},
    {c10::kChar, "i8"},
    {c10::kByte, "u8"},
    {c10::kBool, "bool"},
    {c10::kComplexFloat, "c64"},
    {c10::kComplexDouble, "c128"},
    {c10::kUInt64, "u64"},
    {c10::kFloat8_e4m3fn, "f8e4m3fn"},
    {c10::kFloat8_e5m2, "f8e5m2"},
};

inline std::optional<std::string> dtype_name(c10::ScalarType type) {
  for (const auto& [known, name] : kDtypeNames)
    if (known == type) return name;
  return std::nullopt;
}

inline std::optional<c10::ScalarType> dtype_from_name(const std::string& name) {
  for (const auto& [type, known] : kDtypeNames)
    if (known == name) return type;
  return std::nullopt;
}

}  // namespace memscale::capture

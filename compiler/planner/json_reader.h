// A strict reader over a parsed JSON document: every fault is located by path, unknown keys and wrong types are faults, sizes are
// limited before anything is allocated for them. The first fault wins; later reads give defaults.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::planner {

inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;
inline constexpr int kMaxJsonDepth = 6;
inline constexpr size_t kMaxNameBytes = 4096;
inline constexpr size_t kMaxStorages = 8'000'000;
inline constexpr size_t kMaxOps = 4'000'000;

/// Parses text with limits on size and depth; a key that appears twice in one object is an error, located by line and column.
Expected<nlohmann::json> parse_json(std::string_view text, const std::string& where);

class JsonReader {
 public:
  explicit JsonReader(std::string where) : where_(std::move(where)) {}

  bool ok() const { return error_.message.empty(); }
  const Error& error() const { return error_; }
  void fail(const std::string& path, const std::string& text, Exit code = Exit::kUnsupported);

  /// True if `value` is an object whose keys are all in `known`.
  bool object(const nlohmann::json& value, const std::string& path, std::initializer_list<const char*> known);
  /// The member, or null after a fault if it is missing.
  const nlohmann::json* member(const nlohmann::json& object, const std::string& path, const char* key, bool required);
  const nlohmann::json* array(const nlohmann::json& object, const std::string& path, const char* key, size_t limit,
                              bool required);

  int64_t integer(const nlohmann::json& value, const std::string& path, int64_t least, int64_t most);
  int64_t integer_at(const nlohmann::json& object, const std::string& path, const char* key, int64_t least, int64_t most,
                     const int64_t* fallback);
  double number_at(const nlohmann::json& object, const std::string& path, const char* key, double least, double most);
  bool flag_at(const nlohmann::json& object, const std::string& path, const char* key, bool fallback);
  std::string text_at(const nlohmann::json& object, const std::string& path, const char* key, bool required);
  std::vector<int32_t> indices_at(const nlohmann::json& object, const std::string& path, const char* key, size_t count,
                                  bool required);

 private:
  std::string where_;
  Error error_;
};

/// A quoted JSON string; bytes that are not UTF-8 become U+FFFD.
std::string quote(const std::string& text);
/// The shortest decimal that reads back to the same double.
std::string decimal(double value);

}  // namespace memscale::planner

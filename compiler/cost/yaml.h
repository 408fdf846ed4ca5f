// A strict view of a YAML mapping: located errors, unknown keys refused with the nearest known one. No exception leaves it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::cost {

inline constexpr size_t kMaxYamlBytes = size_t{1} << 20;

Expected<std::string> read_file(const std::string& path);
Expected<YAML::Node> parse_yaml(std::string_view text, const std::string& where);

/// The known word with the least edit distance to `word`, empty if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// Reads a mapping key by key; the first fault wins, later reads give zeroes.
class YamlMap {
 public:
  YamlMap(const YAML::Node& node, std::string where, std::string path);

  /// No others, none missing but the optional ones.
  void require_keys(std::vector<std::string> known, const std::vector<std::string>& optional = {});
  bool has(const char* key) const { return ok() && node_[key].IsDefined(); }
  std::string text(const char* key);
  double number(const char* key, double least, double most);
  int64_t integer(const char* key, int64_t least, int64_t most);
  YAML::Node node(const char* key);
  double number(const YAML::Node& value, const std::string& path, double least, double most);
  void fail(const YAML::Node& at, const std::string& text);

  bool ok() const { return error_.message.empty(); }
  const Error& error() const { return error_; }

 private:
  YAML::Node node_;
  std::string where_, path_;
  Error error_;
};

/// "file:line:column: " of a node.
std::string locate(const std::string& where, const YAML::Node& node);

}  // namespace memscale::cost

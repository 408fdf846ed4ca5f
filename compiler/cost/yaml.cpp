// See yaml.h.
#include "compiler/cost/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

namespace memscale::cost {
namespace {

std::string printed(const YAML::Node& node) {
  if (node.IsScalar()) return "'" + node.Scalar().substr(0, 60) + "'";
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return "nothing";
}

std::string short_number(double value) {
  char text[40];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}  // namespace

Expected<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Exit::kUsage, path + ": cannot be opened", "name a profile in targets/ or give a path to one"};
  std::string text(kMaxYamlBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{Exit::kUsage, path + ": cannot be read", ""};
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

Expected<YAML::Node> parse_yaml(std::string_view text, const std::string& where) {
  if (text.size() > kMaxYamlBytes)
    return Error{Exit::kUnsafe, where + ": more than " + std::to_string(kMaxYamlBytes) + " bytes of YAML", ""};
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& e) {
    return Error{
        Exit::kUsage,
        where + ":" + std::to_string(e.mark.line + 1) + ":" + std::to_string(e.mark.column + 1) + ": not valid YAML: " + e.msg,
        ""};
  }
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = word.size() / 2 + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > 200 || word.size() > 200) continue;
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t j = 0; j < candidate.size(); ++j) {
        const size_t substituted = diagonal + (word[i] != candidate[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string locate(const std::string& where, const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return where + ": ";
  return where + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": ";
}

YamlMap::YamlMap(const YAML::Node& node, std::string where, std::string path)
    : node_(node), where_(std::move(where)), path_(std::move(path)) {
  if (!node_.IsMap()) fail(node_, (path_.empty() ? "the file" : path_) + ": expected a mapping, found " + printed(node_));
}

void YamlMap::fail(const YAML::Node& at, const std::string& text) {
  if (ok()) error_ = {Exit::kUsage, locate(where_, at) + text, "targets/cpu.yaml shows every key"};
}

void YamlMap::require_keys(std::vector<std::string> known, const std::vector<std::string>& optional) {
  if (!ok()) return;
  const size_t required = known.size();
  known.insert(known.end(), optional.begin(), optional.end());
  std::set<std::string> seen;
  for (const auto& item : node_) {
    if (!item.first.IsScalar()) return fail(item.first, "expected a key, found " + printed(item.first));
    const std::string& key = item.first.Scalar();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = nearest(key, known);
      return fail(item.first, "unknown key '" + key.substr(0, 60) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    if (!seen.insert(key).second) return fail(item.first, "the key '" + key + "' appears twice");
  }
  known.resize(required);
  for (const std::string& key : known)
    if (!seen.count(key)) return fail(node_, (path_.empty() ? "" : path_ + ": ") + "the key '" + key + "' is missing");
}

YAML::Node YamlMap::node(const char* key) { return ok() ? node_[key] : YAML::Node(); }

std::string YamlMap::text(const char* key) {
  if (!ok()) return {};
  const YAML::Node value = node_[key];
  if (!value.IsScalar() || value.Scalar().empty()) {
    fail(value, std::string(key) + ": expected a text, found " + printed(value));
    return {};
  }
  return value.Scalar();
}

double YamlMap::number(const YAML::Node& value, const std::string& path, double least, double most) {
  double number = NAN;
  if (value.IsScalar()) {
    const std::string& text = value.Scalar();
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size()) number = NAN;
  }
  if (!(number >= least && number <= most)) {
    fail(value,
         path + ": expected a number from " + short_number(least) + " to " + short_number(most) + ", found " + printed(value));
    return least;
  }
  return number;
}

double YamlMap::number(const char* key, double least, double most) { return ok() ? number(node_[key], key, least, most) : least; }

int64_t YamlMap::integer(const char* key, int64_t least, int64_t most) {
  if (!ok()) return least;
  const YAML::Node value = node_[key];
  int64_t number = 0;
  bool good = value.IsScalar();
  if (good) {
    const std::string& text = value.Scalar();
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    good = fault == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
  }
  if (!good) {
    fail(value, std::string(key) + ": expected an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                    ", found " + printed(value));
    return least;
  }
  return number;
}

}  // namespace memscale::cost

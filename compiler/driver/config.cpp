// Reading and printing of configuration files.
#include "compiler/driver/config.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <set>
#include <sstream>

#include "compiler/driver/suggest.h"

namespace memscale::driver {
namespace {

constexpr size_t kLargestFile = size_t{1} << 20;

std::string at(const std::string& name, const YAML::Mark& mark) { return name + ":" + std::to_string(mark.line + 1) + ": "; }

/// The values of one key: a scalar, a list of scalars, or (shape alone) a map of name to shape.
Expected<std::vector<std::string>> values_of(const Setting& setting, const YAML::Node& node, const std::string& where) {
  using Form = Setting::Form;
  std::vector<std::string> values;
  if (node.IsScalar()) {
    values.push_back(node.Scalar());
  } else if (setting.form == Form::kList && node.IsSequence()) {
    for (const YAML::Node& element : node) {
      if (!element.IsScalar()) return Error{Exit::kUsage, where + setting.key + ": an element is no text", ""};
      values.push_back(element.Scalar());
    }
  } else if (setting.form == Form::kList && node.IsMap()) {
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
        return Error{Exit::kUsage, where + setting.key + ": expected a map of names to text", ""};
      }
      values.push_back(entry.first.Scalar() + "=" + entry.second.Scalar());
    }
  } else {
    return Error{Exit::kUsage,
                 where + setting.key + ": expected " + (setting.form == Form::kList ? "text, a list or a map" : "one value"), ""};
  }
  return values;
}

Expected<Success> apply(const YAML::Node& root, const std::string& name, CompileOptions& options) {
  if (root.IsNull()) return Success{};
  if (!root.IsMap()) {
    return Error{Exit::kUsage, at(name, root.Mark()) + "expected a map of settings, such as 'budget: 0.6x'",
                 "memscalec --print-config prints one"};
  }
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const std::string where = at(name, entry.first.Mark());
    if (!entry.first.IsScalar()) return Error{Exit::kUsage, where + "a key is no text", ""};
    const std::string key = entry.first.Scalar();
    const Setting* setting = find_setting(key);
    if (setting == nullptr) return Error{Exit::kUsage, where + "unknown key '" + key + "'", suggestion(key, setting_keys())};
    if (!seen.insert(key).second) return Error{Exit::kUsage, where + "the key '" + key + "' stands twice", "remove one of them"};
    if (entry.second.IsNull())
      return Error{Exit::kUsage, where + key + ": the value is missing", "remove the line, or give a value"};
    Expected<std::vector<std::string>> values = values_of(*setting, entry.second, where);
    if (!values) return values.error();
    if (setting->clear != nullptr) setting->clear(options);
    for (const std::string& value : *values) {
      Expected<Success> set = setting->set(options, value);
      if (!set) return Error{set.error().code, where + set.error().message, set.error().help};
    }
  }
  return Success{};
}

}  // namespace

Expected<Success> read_config_text(const std::string& text, const std::string& name, CompileOptions& options) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      return Error{Exit::kUsage, name + ": expected one YAML document, found " + std::to_string(documents.size()), ""};
    return documents.empty() ? Expected<Success>(Success{}) : apply(documents.front(), name, options);
  } catch (const YAML::Exception& e) {
    return Error{Exit::kUsage, (e.mark.is_null() ? name + ": " : at(name, e.mark)) + "this is no YAML: " + e.msg, ""};
  }
}

Expected<Success> read_config(const std::string& path, CompileOptions& options) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    // An empty file sets failbit on `text` and is no error.
    if (!file || file.peek() != std::ifstream::traits_type::eof()) {
      return Error{Exit::kUsage, "--config: '" + path + "' cannot be read", "memscalec --print-config > " + path + " writes one"};
    }
  }
  if (text.str().size() > kLargestFile)
    return Error{Exit::kUsage, "--config: '" + path + "' is larger than 1 MiB: no configuration", ""};
  return read_config_text(text.str(), path, options);
}

std::string print_config(const CompileOptions& options) {
  std::string text;
  for (const Setting& setting : settings()) {
    const std::vector<std::string> values = setting.get(options);
    text += "# " + std::string(setting.help) + "\n";
    if (values.empty()) {
      text += "# " + std::string(setting.key) + ":\n";
      continue;
    }
    YAML::Emitter emitter;
    if (setting.form == Setting::Form::kList) {
      emitter << YAML::BeginSeq;
      for (const std::string& value : values) emitter << value;
      emitter << YAML::EndSeq;
      text += std::string(setting.key) + ":\n" + emitter.c_str() + "\n";
    } else if (setting.form == Setting::Form::kFlag) {
      text += std::string(setting.key) + ": " + values.front() + "\n";
    } else {
      emitter << values.front();
      text += std::string(setting.key) + ": " + emitter.c_str() + "\n";
    }
  }
  return text;
}

}  // namespace memscale::driver

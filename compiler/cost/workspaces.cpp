// See workspaces.h.
#include "compiler/cost/workspaces.h"

#include "compiler/cost/yaml.h"

namespace memscale::cost {

Expected<Workspaces> Workspaces::parse(std::string_view text, const std::string& where) {
  auto root = parse_yaml(text, where);
  if (!root) return root.error();
  YamlMap map(*root, where, "");
  map.require_keys({"format", "versions", "ops"});
  const std::string format = map.text("format");
  if (map.ok() && format != "memscale.workspaces/1")
    map.fail(map.node("format"), "format: expected 'memscale.workspaces/1', found '" + format + "'");
  if (!map.ok()) return map.error();
  Workspaces result;
  const YAML::Node versions = map.node("versions"), ops = map.node("ops");
  if (!versions.IsMap()) map.fail(versions, "versions: expected a mapping from library to version");
  if (!ops.IsMap()) map.fail(ops, "ops: expected a mapping from op to expression");
  if (!map.ok()) return map.error();
  for (const auto& item : versions) {
    if (!item.first.IsScalar() || !item.second.IsScalar()) {
      map.fail(item.first, "versions: expected 'library: version'");
      return map.error();
    }
    result.versions_[item.first.Scalar()] = item.second.Scalar();
  }
  for (const auto& item : ops) {
    const std::string name = item.first.IsScalar() ? item.first.Scalar() : "";
    if (name.find("::") == std::string::npos || !item.second.IsScalar()) {
      map.fail(item.first, "ops: expected 'namespace::op: expression'");
      return map.error();
    }
    auto expression = Expression::parse(item.second.Scalar());
    if (!expression) {
      map.fail(item.second, name + ": " + expression.error().message);
      return map.error();
    }
    if (!result.entries_.insert({name, Entry{std::move(*expression), locate(where, item.second)}}).second) {
      map.fail(item.first, "'" + name + "' appears twice");
      return map.error();
    }
  }
  return result;
}

Expected<Workspaces> Workspaces::load(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse(*text, path);
}

const Workspaces::Entry* Workspaces::find(const std::string& name, const std::string& overload) const {
  auto it = overload.empty() ? entries_.end() : entries_.find(name + "." + overload);
  if (it == entries_.end()) it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

bool Workspaces::has_workspace_entry(const std::string& name, const std::string& overload) const {
  return find(name, overload) != nullptr;
}

Expected<int64_t> Workspaces::bytes(const OpDescription& op, const Profile& profile) const {
  const Entry* entry = find(op.name, op.overload);
  if (!entry) return int64_t{0};
  auto value = entry->expression.evaluate(op, profile.threads);
  if (!value) return Error{value.error().code, entry->place + value.error().message, ""};
  if (*value < 0)
    return Error{Exit::kCompile,
                 entry->place + "the workspace of " + op.name + " comes out as " + std::to_string(*value) + " bytes", ""};
  return profile.round_bytes(*value);
}

}  // namespace memscale::cost

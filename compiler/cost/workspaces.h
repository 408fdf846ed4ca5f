// Transient bytes of ops beyond their outputs, as targets/*.workspaces.yaml say them ("memscale.workspaces/1").
//
// An entry is an expression over the call's sizes (expression.h). "aten::op.overload" goes before "aten::op". An op without an
// entry counts nothing; the caller names it, see has_workspace_entry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "compiler/cost/expression.h"
#include "compiler/cost/profile.h"
#include "compiler/support/error.h"

namespace memscale::cost {

class Workspaces {
 public:
  static Expected<Workspaces> parse(std::string_view text, const std::string& where);
  static Expected<Workspaces> load(const std::string& path);

  bool has_workspace_entry(const std::string& name, const std::string& overload = "") const;
  /// Bytes as the profile's allocator counts them; 0 without an entry. An expression that fails or is negative is an error.
  Expected<int64_t> bytes(const OpDescription& op, const Profile& profile) const;
  /// Versions the figures were measured with: "torch" -> "2.11".
  const std::map<std::string, std::string>& versions() const { return versions_; }

 private:
  struct Entry {
    Expression expression;
    std::string place;  // "file:line:column: "
  };
  const Entry* find(const std::string& name, const std::string& overload) const;

  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> versions_;
};

}  // namespace memscale::cost

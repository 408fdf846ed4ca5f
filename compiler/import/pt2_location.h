// User locations of exported nodes: file and line from the stack trace, module path from the module stack.
// Needs LibTorch's SourceRange and Scope; destroys nothing. docs/formats/pt2.md says how to read them back.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <memory>
#include <string>

#include "compiler/import/pt2_json.h"

namespace memscale::import {

struct NodeLocation {
  std::string file;
  int64_t line = 0;
  std::string code;           // the source line, as far as the archive holds it
  std::string module_path;    // "" for the root
  std::string shown() const;  // "model.py:12 (module h.3)" for messages
};

/// Reads node metadata; missing or malformed entries leave fields empty.
NodeLocation location_of(const Json& node);

/// Puts locations on nodes: one Source per file and line, one Scope per module path, both shared.
class LocationWriter {
 public:
  explicit LocationWriter(torch::jit::Graph& graph) : root_(graph.current_scope()) {}
  void set(torch::jit::Node* node, const NodeLocation& location);

 private:
  torch::jit::ScopePtr root_;
  std::map<std::pair<std::string, int64_t>, torch::jit::SourceRange> ranges_;
  std::map<std::string, torch::jit::ScopePtr> scopes_;
};

}  // namespace memscale::import

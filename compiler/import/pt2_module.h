// Builds a ScriptModule with the submodules that qualified names imply. Needs LibTorch; the module is new, nothing is destroyed.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/import/pt2_json.h"

namespace memscale::import {

enum class StateKind { kParameter, kBuffer, kConstant };

/// Registers state under names such as "h.3.attn.weight", making module "h", its "3" and so on.
class ModuleBuilder {
 public:
  ModuleBuilder();
  /// Errors (Failure, kUnsafe): an empty or hostile name, a name used twice or both as a tensor and as a module.
  void add(const std::string& name, const at::Tensor& tensor, StateKind kind);
  /// An empty module at `path`, for modules without state: the tree is then the user's own.
  void add_module(const std::string& path);
  torch::jit::Module& root() { return modules_.at(""); }

 private:
  torch::jit::Module& module_at(const std::string& path);

  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  std::map<std::string, torch::jit::Module> modules_;  // by path
};

/// Reads attributes inside a graph: prim::GetAttr chains, each module once.
class AttributeReader {
 public:
  AttributeReader(torch::jit::Graph& graph, torch::jit::Value* self) : graph_(graph) { modules_.emplace("", self); }
  torch::jit::Value* read(const std::string& name);

 private:
  torch::jit::Value* module_value(const std::string& path);
  torch::jit::Graph& graph_;
  std::unordered_map<std::string, torch::jit::Value*> modules_;
};

/// "a.b.c" → {"a.b", "c"}; {"", "c"} for "c".
std::pair<std::string, std::string> split_name(const std::string& name);

}  // namespace memscale::import

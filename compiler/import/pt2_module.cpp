// Module trees from qualified names. Every module gets its own class, as torch.jit.trace makes them.
// Needs LibTorch; destroys nothing.
#include "compiler/import/pt2_module.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cctype>

namespace memscale::import {
namespace {

constexpr size_t kNameBytes = 2048;
constexpr long kDepth = 200;

void check_name(const std::string& name) {
  if (name.empty() || name.size() > kNameBytes) broken("a tensor or module name of " + std::to_string(name.size()) + " bytes");
  if (std::count(name.begin(), name.end(), '.') > kDepth)
    broken("module names are nested more than " + std::to_string(kDepth) + " deep");
  char before = '.';
  for (char c : name) {
    if (c == '.' && before == '.') broken("the name '" + name + "' has an empty part");
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\'' || c == '\\' || c == 0x7f)
      broken("a name with quotes or control characters");
    before = c;
  }
  if (before == '.') broken("the name '" + name + "' has an empty part");
}

/// A class name that Python source can spell, told apart by a number.
std::string class_name(const std::string& path, size_t number) {
  std::string out = path.empty() ? "root" : path;
  for (char& c : out) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return "__torch__.imported.m" + std::to_string(number) + "_" + out;
}

}  // namespace

std::pair<std::string, std::string> split_name(const std::string& name) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

ModuleBuilder::ModuleBuilder() : unit_(std::make_shared<torch::jit::CompilationUnit>()) { module_at(""); }

torch::jit::Module& ModuleBuilder::module_at(const std::string& path) {
  auto it = modules_.find(path);
  if (it != modules_.end()) return it->second;
  torch::jit::Module module(c10::QualifiedName(class_name(path, modules_.size())), unit_);
  module.register_attribute("training", c10::BoolType::get(), true);
  if (!path.empty()) {
    auto [parent_path, leaf] = split_name(path);
    torch::jit::Module& parent = module_at(parent_path);
    if (parent.hasattr(leaf)) broken("'" + path + "' is both a tensor and a module");
    parent.register_module(leaf, module);
  }
  return modules_.emplace(path, module).first->second;
}

void ModuleBuilder::add_module(const std::string& path) {
  if (path.empty()) return;
  check_name(path);
  module_at(path);
}

void ModuleBuilder::add(const std::string& name, const at::Tensor& tensor, StateKind kind) {
  check_name(name);
  auto [path, leaf] = split_name(name);
  torch::jit::Module& module = module_at(path);
  if (module.hasattr(leaf) || leaf == "forward") broken("the name '" + name + "' is taken");
  switch (kind) {
    case StateKind::kParameter:
      module.register_parameter(leaf, tensor, /*is_buffer=*/false);
      break;
    case StateKind::kBuffer:
      module.register_buffer(leaf, tensor);
      break;
    case StateKind::kConstant:
      module.register_attribute(leaf, c10::TensorType::get(), tensor);
      break;
  }
}

torch::jit::Value* AttributeReader::module_value(const std::string& path) {
  auto it = modules_.find(path);
  if (it != modules_.end()) return it->second;
  auto [parent, leaf] = split_name(path);
  torch::jit::Value* value = graph_.insertGetAttr(module_value(parent), leaf);
  modules_.emplace(path, value);
  return value;
}

torch::jit::Value* AttributeReader::read(const std::string& name) {
  auto [path, leaf] = split_name(name);
  return graph_.insertGetAttr(module_value(path), leaf);
}

}  // namespace memscale::import

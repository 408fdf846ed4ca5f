// Translates an exported program's nodes into TorchScript IR (docs/formats/pt2.md). Appends to a graph; throws Failure.
// Needs LibTorch's operator registry; no node is executed.
#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/import/pt2_autocast.h"
#include "compiler/import/pt2_json.h"
#include "compiler/import/pt2_location.h"

namespace memscale::import {

/// Names of one (sub)graph of the exported program.
struct NameScope {
  explicit NameScope(const Json& g) : graph(g) {}
  const Json& graph;
  std::unordered_map<std::string, torch::jit::Value*> values;
};

class GraphTranslator {
 public:
  explicit GraphTranslator(torch::jit::Graph& graph) : graph_(graph), locations_(graph) {}

  /// Binds a name and remembers the tensor's dtype; `leaf` marks a parameter that autocast may cache the cast of.
  void bind(NameScope& scope, const std::string& name, torch::jit::Value* value, bool leaf = false);
  void nodes(NameScope& scope);
  /// The value of a graph output: a tensor or number; null for None and for plain constants.
  torch::jit::Value* output(NameScope& scope, const Json& argument);
  torch::jit::Value* lookup(NameScope& scope, const std::string& name);
  size_t dropped_assertions() const { return dropped_assertions_; }
  /// Autocast regions of a device type that none of the tensors inside are on: they do nothing, as in eager.
  const std::set<std::string>& idle_autocasts() const { return idle_autocasts_; }

 private:
  using Value = torch::jit::Value;
  using Operator = std::shared_ptr<torch::jit::Operator>;
  struct TensorFacts {
    at::ScalarType dtype;
    std::string device;
  };

  void node(NameScope& scope, const Json& node);
  void aten(NameScope& scope, const Json& node, const std::string& target);
  bool numbers(NameScope& scope, const Json& node, const std::string& target);
  void higher_order(NameScope& scope, const Json& node, const std::string& name);
  std::vector<Value*> inlined(NameScope& scope, const Json& graph_argument, const Json& inputs, size_t first);
  void bind_outputs(NameScope& scope, const Json& node, const std::vector<Value*>& values);
  void bind_number(NameScope& scope, const Json& node, Value* value);

  Operator find_operator(const std::string& name, const std::string& overload);
  Operator number_variant(const Operator& op, const std::vector<bool>& is_number);
  torch::jit::Node* emit(const c10::FunctionSchema& schema, std::vector<Value*> inputs);
  void check_overload(torch::jit::Node* node, const c10::FunctionSchema& wanted);

  Value* constant(const c10::IValue& value) { return graph_.insertConstant(value); }
  Value* argument(NameScope& scope, const Json& arg, const c10::Argument& formal);
  Value* tensor_list(NameScope& scope, const Json& list, bool optional_elements);
  Value* number_list(NameScope& scope, const Json& list, const c10::TypePtr& element);
  Value* number(NameScope& scope, const std::string& kind, const Json& value, const c10::TypePtr& formal);
  Value* sym(NameScope& scope, const Json& argument);

  void apply_autocast(const c10::FunctionSchema& schema, std::vector<Value*>& inputs);
  Value* cast(Value* value, at::ScalarType dtype, const Autocast& region);
  bool eligible(Value* value, const Autocast& region) const;

  [[noreturn]] void unsupported(const std::string& what, const std::string& help = "");

  torch::jit::Graph& graph_;
  LocationWriter locations_;
  NodeLocation here_;
  std::string target_;
  std::vector<Autocast> autocasts_;
  std::unordered_map<std::string, Operator> operators_;
  std::unordered_map<Value*, TensorFacts> facts_;
  std::unordered_set<Value*> leaves_;
  std::unordered_map<Value*, Value*> cast_cache_;
  size_t dropped_assertions_ = 0;
  std::set<std::string> idle_autocasts_;
};

}  // namespace memscale::import

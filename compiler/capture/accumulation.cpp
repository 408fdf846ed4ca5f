// Post hooks on the nodes before a leaf; the sum itself is the engine's input buffer, a chain of additions onto its first operand.
#include "compiler/capture/accumulation.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

namespace memscale::capture {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

struct ArrivalHook : torch::autograd::FunctionPostHook {
  std::vector<std::pair<size_t, size_t>> edges;  // output of the node → leaf
  std::shared_ptr<std::vector<int64_t>> counts;

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    for (const auto& [output, leaf] : edges)
      if (output < outputs.size() && outputs[output].defined()) ++(*counts)[leaf];
    return outputs;
  }
};

}  // namespace

ArrivalCounter::ArrivalCounter(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& leaves)
    : counts_(std::make_shared<std::vector<int64_t>>(leaves.size(), 0)) {
  std::unordered_map<const Node*, size_t> leaf_of;
  for (size_t i = 0; i < leaves.size(); ++i) leaf_of[torch::autograd::impl::gradient_edge(leaves[i]).function.get()] = i;
  std::vector<Node*> pending;
  std::unordered_set<const Node*> seen;
  for (const at::Tensor& root : roots)
    if (Node* node = root.grad_fn().get(); node && seen.insert(node).second) pending.push_back(node);
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    auto hook = std::make_unique<ArrivalHook>();
    for (size_t i = 0; i < node->next_edges().size(); ++i) {
      Node* next = node->next_edge(i).function.get();
      if (!next) continue;
      if (const auto leaf = leaf_of.find(next); leaf != leaf_of.end())
        hook->edges.emplace_back(i, leaf->second);
      else if (seen.insert(next).second)
        pending.push_back(next);
    }
    if (hook->edges.empty()) continue;
    hook->counts = counts_;
    node->add_post_hook(std::move(hook));
  }
}

void mark_accumulations(Graph& graph, const std::vector<int64_t>& arrivals) {
  std::vector<int32_t> uses(graph.values.size(), 0);
  std::unordered_map<ValueId, Call*> producer;
  const auto use = [&](ValueId value) {
    if (value != kNoValue) ++uses[value];
  };
  for (Call& call : graph.calls) {
    for_each_operand(call, use);
    for (const Result& result : call.results)
      for (const ValueId value : result.values) producer[value] = &call;
  }
  for (const Output& output : graph.outputs) use(output.value);
  for (const Writeback& writeback : graph.writebacks) use(writeback.value);
  for (const Gradient& gradient : graph.gradients) use(gradient.value);

  for (size_t i = 0; i < graph.gradients.size(); ++i) {
    std::vector<Call*> chain;
    ValueId sum = graph.gradients[i].value;
    while (static_cast<int64_t>(chain.size()) + 1 < arrivals[i]) {
      const auto found = producer.find(sum);
      Call* call = found == producer.end() ? nullptr : found->second;
      if (!call || !call->backward || call->op != "aten::add" || call->overload != "Tensor" || uses[sum] != 1) break;
      chain.push_back(call);
      sum = std::get<Operand>(call->args[0]).value;
    }
    if (static_cast<int64_t>(chain.size()) + 1 == arrivals[i])
      for (Call* call : chain) call->accumulation = true;
  }
}

}  // namespace memscale::capture

// Dead-call elimination on the captured graph. Plain C++.
#include "compiler/capture/dead_calls.h"

#include <algorithm>

namespace memscale::capture {
void remove_dead_calls(Graph& graph) {
  std::vector<bool> value_live(graph.values.size(), false);
  std::vector<bool> storage_live(graph.storages.size(), false);  // a live value, or an argument, lies in it
  const auto use = [&](ValueId value) {
    if (value == kNoValue) return;
    value_live[value] = true;
    storage_live[graph.values[value].storage] = true;
  };
  for (const Argument& argument : graph.arguments)
    if (argument.role != Role::kConstant) storage_live[graph.values[argument.value].storage] = true;
  for (const Output& output : graph.outputs) use(output.value);
  for (const Gradient& gradient : graph.gradients) use(gradient.value);
  for (const Writeback& writeback : graph.writebacks) use(writeback.value);

  std::vector<bool> keep(graph.calls.size(), false);
  for (size_t i = graph.calls.size(); i-- > 0;) {
    const Call& call = graph.calls[i];
    bool live = call.rng;
    for (const Result& result : call.results)
      for (ValueId value : result.values) live = live || (value != kNoValue && value_live[value]);
    for (ValueId value : call.mutates) live = live || storage_live[graph.values[value].storage];
    keep[i] = live;
    if (live) for_each_operand(call, use);
  }
  std::vector<Call> calls;
  size_t border = 0;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (!keep[i]) continue;
    if (i < graph.backward_begin) ++border;
    calls.push_back(std::move(graph.calls[i]));
  }
  graph.calls = std::move(calls);
  graph.backward_begin = border;
  std::erase_if(graph.arguments,
                [&](const Argument& argument) { return argument.role == Role::kConstant && !value_live[argument.value]; });
}

}  // namespace memscale::capture

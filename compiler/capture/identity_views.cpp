// Value numbering of views by (storage, layout). Plain C++.
#include "compiler/capture/identity_views.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace memscale::capture {
namespace {

using Layout = std::tuple<StorageId, std::string, int64_t, std::vector<int64_t>, std::vector<int64_t>, bool, bool>;

Layout layout_of(const Value& value) {
  return {value.storage, value.dtype, value.offset, value.sizes, value.strides, value.conjugated, value.negated};
}

}  // namespace

void fold_identity_views(Graph& graph) {
  std::set<StorageId> mutated;
  for (const Call& call : graph.calls)
    for (const ValueId value : call.mutates) mutated.insert(graph.values[value].storage);

  std::vector<ValueId> replacement(graph.values.size());
  std::iota(replacement.begin(), replacement.end(), 0);
  std::map<Layout, ValueId> first;
  const auto enter = [&](ValueId id) {
    const Value& value = graph.values[id];
    if (mutated.count(value.storage)) return;
    const auto [entry, fresh] = first.try_emplace(layout_of(value), id);
    if (!fresh) replacement[id] = entry->second;
  };
  const auto replace = [&](ValueId& value) {
    if (value != kNoValue) value = replacement[value];
  };

  for (const Argument& argument : graph.arguments) enter(argument.value);
  for (Call& call : graph.calls) {
    bool view = !call.rng && call.mutates.empty();
    std::set<StorageId> operands;
    for (Arg& arg : call.args) {
      if (auto* operand = std::get_if<Operand>(&arg)) {
        replace(operand->value);
        operands.insert(graph.values[operand->value].storage);
      } else if (auto* list = std::get_if<OperandList>(&arg)) {
        for (ValueId& value : list->values) replace(value);
      }
    }
    for (const Result& result : call.results)
      for (const ValueId value : result.values) view = view && value != kNoValue && operands.count(graph.values[value].storage);
    for (const Result& result : call.results) {
      for (const ValueId value : result.values) {
        if (value == kNoValue) continue;
        if (view)
          enter(value);
        else if (!mutated.count(graph.values[value].storage))
          first.try_emplace(layout_of(graph.values[value]), value);
      }
    }
  }
  for (Output& output : graph.outputs) replace(output.value);
  for (Gradient& gradient : graph.gradients) replace(gradient.value);
  for (Writeback& writeback : graph.writebacks) replace(writeback.value);
}

}  // namespace memscale::capture

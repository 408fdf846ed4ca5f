// Tied parameters of structure-only archives. Needs the parsed program; changes which tensors payloads name.
#pragma once

#include <string>
#include <vector>

#include "compiler/import/pt2_json.h"
#include "compiler/import/pt2_weights.h"

namespace memscale::import {

/// A graph input that is state: its name in the graph and its payload.
struct StateInput {
  std::string placeholder;
  size_t payload;
  bool parameter;
};

/// Without bytes, sharing cannot be seen in the payloads. Export keeps one input of each group of tied parameters in use and the
/// others unused. So an unused parameter of module M is taken to be tied to the one parameter of the same layout from outside M
/// that nodes of M itself use. What is found is told in `warnings`.
void infer_tying(const Json& graph, const std::vector<StateInput>& inputs, Payloads& payloads,
                 std::vector<std::string>& warnings);

}  // namespace memscale::import

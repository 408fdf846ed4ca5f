// Removal of calls whose results nobody uses, before anything is planned.
#pragma once

#include "compiler/capture/graph.h"

namespace memscale::capture {

/// Keeps calls that draw random numbers, calls that write argument memory, and what they and the graph's results need. Value and
/// storage numbers stay as they are; constants that nothing uses any more are dropped.
void remove_dead_calls(Graph& graph);

}  // namespace memscale::capture

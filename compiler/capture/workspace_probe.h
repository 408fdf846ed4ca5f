// Transient memory of kernels on the CPU target, measured: each distinct call of an op that is known to allocate is run once on
// zeros.
#pragma once

#include "compiler/capture/graph.h"

namespace memscale::capture {

/// Fills Call::workspace_bytes of the calls that can be measured cheaply (operands and results within 256 MiB, not a plain matrix
/// product or pointwise op). Others keep -1. oneDNN's own scratch is not counted: it does not come from c10's allocator.
void measure_workspaces(Graph& graph);

}  // namespace memscale::capture

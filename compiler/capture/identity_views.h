// Views that come back to a layout which the step already has: detach, alias, t of t, a slice of everything.
#pragma once

#include "compiler/capture/graph.h"

namespace memscale::capture {

/// Replaces each result of a pure view that has the storage, layout and dtype of an earlier value by that value. The calls stay
/// and are dead. Storages that a call mutates are left alone: there an earlier value need not have the later one's contents.
void fold_identity_views(Graph& graph);

}  // namespace memscale::capture

//===- InPlaceRules.h - What may stand for a captured call ------*- C++ -*-===//
//
// The verifier's own knowledge of in-place kernels, kept apart from the table
// that the transforms use.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_VERIFY_INPLACERULES_H
#define MEMSCALE_PASSES_VERIFY_INPLACERULES_H

#include "ir/Memscale.h"

#include <optional>

namespace memscale::passes {

/// The operand that `kernel` overwrites with what `original` would have put into fresh memory; none if `kernel` is no in-place
/// form of `original`. In-place forms have one result with the layout of the operand, which fills its memory, and are
/// elementwise.
std::optional<unsigned> overwrittenOperand(ir::KernelOpInterface kernel, ir::KernelOpInterface original);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_VERIFY_INPLACERULES_H

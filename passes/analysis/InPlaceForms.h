//===- InPlaceForms.h - Kernels that can write over an operand --*- C++ -*-===//
//
// The table of in-place and out forms of elementwise ATen kernels.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_ANALYSIS_INPLACEFORMS_H
#define MEMSCALE_PASSES_ANALYSIS_INPLACEFORMS_H

#include "passes/analysis/Storages.h"

#include <optional>

namespace memscale::passes {

/// How a call writes its result into the memory of one operand.
struct InPlaceForm {
  std::string schema;
  std::string overload;
  bool out = false; // the operand is passed once more, as the last argument
};

/// The form in which `kernel` writes over `operand`, if ATen has one whose numbers are the same: one
/// result of the operand's type. Says nothing of memory.
std::optional<InPlaceForm> inPlaceForm(ir::KernelOpInterface kernel, unsigned operand);

/// A kernel of the table, in any form: it reads and writes element by element and needs no workspace.
bool isElementwise(ir::KernelOpInterface kernel);

/// Operands whose memory the result may take over once they are dead: there is a form, the operand fills memory made by a call,
/// and no other operand shows that memory. In order, `self` first.
llvm::SmallVector<unsigned> inPlaceOperands(ir::KernelOpInterface kernel, const Storages &storages);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_ANALYSIS_INPLACEFORMS_H

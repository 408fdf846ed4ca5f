//===- Passes.h - Passes over memscale.step ---------------------*- C++ -*-===//
//
// Pass constructors and registration, generated from Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_PASSES_H
#define MEMSCALE_PASSES_PASSES_H

#include "ir/Memscale.h"

#include "mlir/Pass/Pass.h"

namespace memscale::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_PASSES_H

//===- Verify.h - The verifiers as functions --------------------*- C++ -*-===//
//
// What memscale-verify-values and memscale-verify-memory prove. They include
// nothing of transforms, policy or analysis.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_PASSES_VERIFY_VERIFY_H
#define MEMSCALE_PASSES_VERIFY_VERIFY_H

#include "ir/Memscale.h"

namespace memscale::passes {

/// `@step.reference` holds the captured form of `@step`.
inline std::string referenceName(ir::StepOp step) { return (step.getSymName() + ".reference").str(); }

/// Every kernel of `step` reads what the same call of `captured` read; effects happen once, in order. Emits one error for the
/// first fault.
mlir::LogicalResult verifyValues(ir::StepOp captured, ir::StepOp step);

/// No read after free, no double free, no leak, nothing takes over memory that is read later. Emits one error for the first
/// fault.
mlir::LogicalResult verifyMemory(ir::StepOp step);

} // namespace memscale::passes

#endif // MEMSCALE_PASSES_VERIFY_VERIFY_H

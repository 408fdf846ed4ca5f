//===- Memscale.h - The memscale dialect ------------------------*- C++ -*-===//
//
// Declarations of the dialect: types, attributes, interfaces, operations.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_IR_MEMSCALE_H
#define MEMSCALE_IR_MEMSCALE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "MemscaleDialect.h.inc"
#include "MemscaleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "MemscaleAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "MemscaleTypes.h.inc"

#include "MemscaleInterfaces.h.inc"

namespace memscale::ir {
class BorderOp;
class ReturnOp;
} // namespace memscale::ir

#define GET_OP_CLASSES
#include "MemscaleOps.h.inc"

namespace memscale::ir {

/// A kernel that only makes new names for the memory of one operand: no effects, every operand and result shares one storage.
bool isView(KernelOpInterface kernel);

/// The captured source of an operation: "file.py:12 (layers.3.attn)"; what is not known is left out.
std::string describeLocation(mlir::Location loc);

/// The parts of a call's location. A module path is the name of a NameLoc around the line.
struct SourceLocation {
  llvm::StringRef file;
  unsigned line = 0;
  llvm::StringRef modulePath;
};
SourceLocation getSourceLocation(mlir::Location loc);
mlir::Location makeSourceLocation(mlir::MLIRContext *context, const SourceLocation &source);

} // namespace memscale::ir

#endif // MEMSCALE_IR_MEMSCALE_H

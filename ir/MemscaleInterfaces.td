// What calls and their recomputations have in common.
#ifndef MEMSCALE_INTERFACES_TD
#define MEMSCALE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Memscale_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::memscale::ir";
  let description = [{ An ATen kernel that runs: `memscale.call` or `memscale.recompute`. }];
  let methods = [
    InterfaceMethod<"schema name", "::llvm::StringRef", "getSchema">,
    InterfaceMethod<"schema overload", "::llvm::StringRef", "getOverload">,
    InterfaceMethod<"number of the captured call", "uint32_t", "getId">,
    InterfaceMethod<"one entry for each schema argument", "::mlir::ArrayAttr", "getArgs">,
    InterfaceMethod<"one entry for each schema return", "::mlir::ArrayAttr", "getReturns">,
    InterfaceMethod<"one entry for each result", "::mlir::ArrayAttr", "getAliases">,
    InterfaceMethod<"operands whose memory the kernel writes", "::llvm::ArrayRef<int32_t>", "getMutates">,
    InterfaceMethod<"draws random numbers", "bool", "getRng">,
    InterfaceMethod<"part of backward", "bool", "getBackward">,
    InterfaceMethod<"autograd's own addition of two gradients of one argument", "bool", "getAccumulation">,
    InterfaceMethod<"slot of a generator state", "::std::optional<uint32_t>", "getRngSlot">,
    InterfaceMethod<"the repeated block that the kernel belongs to", "::std::optional<uint32_t>", "getBlockNumber">,
    InterfaceMethod<"measured transient memory", "::std::optional<uint64_t>", "getWorkspaceBytes">
  ];
  let extraSharedClassDeclaration = [{
    /// The alias entry of a result.
    ::memscale::ir::AliasAttr getAlias(unsigned result) {
      return ::llvm::cast<::memscale::ir::AliasAttr>($_op.getAliases()[result]);
    }
    /// Writes memory or advances the generator.
    bool hasEffects() { return $_op.getRng() || !$_op.getMutates().empty(); }
    /// The value that shares the memory of `result`, or null if its memory is fresh.
    ::mlir::Value getAliasSource(unsigned result) {
      auto alias = ::llvm::cast<::memscale::ir::AliasAttr>($_op.getAliases()[result]);
      switch (alias.getKind()) {
        case ::memscale::ir::AliasKind::Fresh: return {};
        case ::memscale::ir::AliasKind::Operand: return $_op->getOperand(alias.getValue());
        case ::memscale::ir::AliasKind::Result: return $_op->getResult(alias.getValue());
      }
      return {};
    }
  }];
}

#endif // MEMSCALE_INTERFACES_TD

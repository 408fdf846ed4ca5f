// The memscale dialect: one training step as a list of ATen calls. See docs/rationale/ir.md.
#ifndef MEMSCALE_DIALECT_TD
#define MEMSCALE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Memscale_Dialect : Dialect {
  let name = "memscale";
  let cppNamespace = "::memscale::ir";
  let summary = "a training step as ATen calls over tensors with known layout and memory";
  let description = [{
    A module holds one `memscale.step`. Its block arguments exist before the step, its calls are ATen kernels in the order in
    which they run, `memscale.border` separates forward from backward. A tensor value names a piece of memory: every call says
    of each result whether the memory is fresh or shared with an operand.

    A step goes through the phases `captured`, `planned`, `rewritten` and `scheduled`; the verifier of `memscale.step` knows what each
    may contain.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{ void registerMemscaleTypes(); }];
  let useDefaultAttributePrinterParser = 1;
}

#endif // MEMSCALE_DIALECT_TD

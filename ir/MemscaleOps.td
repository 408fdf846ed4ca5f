// Operations of the memscale dialect.
#ifndef MEMSCALE_OPS_TD
#define MEMSCALE_OPS_TD

include "MemscaleAttrs.td"
include "MemscaleDialect.td"
include "MemscaleInterfaces.td"
include "MemscaleTypes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Memscale_Op<string mnemonic, list<Trait> traits = []> : Op<Memscale_Dialect, mnemonic, traits>;

def Memscale_StepOp : Memscale_Op<"step", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "one training step: forward, border, backward";
  let description = [{
    The block arguments exist before the step. `arguments` has one `#memscale.argument` for each. `schedule`, of a planned step, is the
    order in which captured calls run, by their numbers, a number again for a recomputation; `schedule_inplace` has for each run the
    operand whose memory the result takes over, or -1. A `reference` is the copy of a captured step that the verifier compares with: no pass
    changes it.

    ```mlir
    memscale.step @step captured for "cpu"(
        %w: !memscale.tensor<f32[4x4]> #memscale.argument<role = parameter, name = "w", bytes = 64, storage = 0, requires_grad = true>) {
      ...
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Memscale_PhaseAttr:$phase, StrAttr:$target, ArrayAttr:$arguments,
    OptionalAttr<StrAttr>:$input_structure, OptionalAttr<StrAttr>:$output_structure, OptionalAttr<DictionaryAttr>:$guards,
    OptionalAttr<DenseI32ArrayAttr>:$schedule, OptionalAttr<DenseI32ArrayAttr>:$schedule_inplace,
    UnitAttr:$reference);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ArgumentAttr getArgumentInfo(unsigned index) { return ::llvm::cast<ArgumentAttr>(getArguments()[index]); }
    BorderOp getBorder();
    ReturnOp getReturn();
  }];
}

class Memscale_KernelOp<string mnemonic> : Memscale_Op<mnemonic,
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<Memscale_KernelOpInterface>]> {
  let arguments = (ins Variadic<Memscale_TensorType>:$tensors, I32Attr:$id, StrAttr:$schema, StrAttr:$overload, ArrayAttr:$args,
    ArrayAttr:$returns, ArrayAttr:$aliases, DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$mutates, UnitAttr:$rng, UnitAttr:$backward, UnitAttr:$accumulation,
    OptionalAttr<I32Attr>:$rng_slot, OptionalAttr<I32Attr>:$block_number, OptionalAttr<Memscale_DecisionAttr>:$decision,
    OptionalAttr<I32Attr>:$takes_over, OptionalAttr<I64Attr>:$workspace_bytes);
  let results = (outs Variadic<Memscale_TensorType>:$outputs);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Memscale_CallOp : Memscale_KernelOp<"call"> {
  let summary = "the first run of an ATen kernel";
  let description = [{
    `id` is the number of the call in the captured step. Schema arguments stand in schema order, tensors and constants mixed; `alias` says
    for each result where its memory comes from. A call with `rng` and a slot saves the generator's state there before it draws.
    `takes_over n` asks that the result be written into the memory of operand n. `workspace_bytes` is what the kernel allocates beside its
    results, where it was measured. An `accumulation` adds operand 1 to the gradient that an argument has received so far: the plan hands both
    to autograd, which adds them as it does in eager.

    ```mlir
    %2 = memscale.call 7 "aten::add.Tensor"(%0, %1, 1) alias [fresh(64)]
       : (!memscale.tensor<f32[4x4]>, !memscale.tensor<f32[4x4]>) -> !memscale.tensor<f32[4x4]>
    ```
  }];
}

def Memscale_RecomputeOp : Memscale_KernelOp<"recompute"> {
  let summary = "a later run of a call";
  let description = [{
    Runs the call `id` again on equal operands. With `rng` it draws under the state that the call saved in the slot, and leaves the
    generator as it is. A recomputation has no effects that may be merged or dropped: CSE would undo it.
  }];
}

def Memscale_BorderOp : Memscale_Op<"border", [AttrSizedOperandSegments]> {
  let summary = "end of forward: outputs go to the caller, write-backs to their arguments";
  let description = [{
    `tangents` has for each output the position of the argument that brings its gradient, or -1. Write-back i copies its value into the
    argument at position `writeback_arguments[i]`.
  }];
  let arguments = (ins Variadic<Memscale_TensorType>:$outputs, Variadic<Memscale_TensorType>:$writebacks,
    DenseBoolArrayAttr:$requires_grad, DenseI32ArrayAttr:$tangents, DenseI32ArrayAttr:$writeback_arguments);
  let assemblyFormat = [{
    (`outputs` `(` $outputs^ `:` type($outputs) `)`)? (`writebacks` `(` $writebacks^ `:` type($writebacks) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Memscale_FreeOp : Memscale_Op<"free"> {
  let summary = "gives up the names of tensors";
  let description = [{ The memory behind a name is released with the last name that shares it. Arguments are never freed. }];
  let arguments = (ins Variadic<Memscale_TensorType>:$tensors);
  let assemblyFormat = "$tensors attr-dict `:` type($tensors)";
  let hasVerifier = 1;
}

def Memscale_ReturnOp : Memscale_Op<"return", [Terminator, HasParent<"StepOp">]> {
  let summary = "end of backward: the gradients";
  let description = [{ Gradient i belongs to the argument at position `arguments[i]`; the arguments in `undefined` get none. }];
  let arguments = (ins Variadic<Memscale_TensorType>:$gradients, DenseI32ArrayAttr:$arguments, DenseI32ArrayAttr:$undefined);
  let assemblyFormat = "(`gradients` `(` $gradients^ `:` type($gradients) `)`)? attr-dict";
  let hasVerifier = 1;
}

#endif // MEMSCALE_OPS_TD

// Types of the memscale dialect.
#ifndef MEMSCALE_TYPES_TD
#define MEMSCALE_TYPES_TD

include "MemscaleDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Memscale_TensorType : TypeDef<Memscale_Dialect, "StridedTensor"> {
  let mnemonic = "tensor";
  let summary = "a strided tensor";
  let description = [{
    Dtype, sizes, strides and storage offset (in elements), and the place: the target's memory, or the host beside it. Contiguous
    strides, offset 0 and the target are not printed:

    ```mlir
    !memscale.tensor<bf16[8x128x768]>
    !memscale.tensor<f32[64x32], strides [1, 64], offset 2048>
    !memscale.tensor<i64[], host>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"f32, f64, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, bool, c32, c64, c128, f8e4m3fn, f8e5m2">:$dtype,
    ArrayRefParameter<"int64_t">:$sizes,
    ArrayRefParameter<"int64_t">:$strides,
    "int64_t":$offset,
    "bool":$host
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one element; 0 for a name that is no dtype.
    static int64_t elementBytes(::llvm::StringRef dtype);
    int64_t getElementBytes() const { return elementBytes(getDtype()); }
    int64_t getNumElements() const;
    /// One past the last element that the tensor touches in its storage; 0 for an empty tensor.
    int64_t getExtent() const;
    /// The elements lie in memory without gaps and without overlap, in any order of dimensions.
    bool isDense() const;
    /// The strides that a contiguous tensor of these sizes has.
    static ::llvm::SmallVector<int64_t> contiguousStrides(::llvm::ArrayRef<int64_t> sizes);
  }];
}

#endif // MEMSCALE_TYPES_TD

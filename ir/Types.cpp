//===- Types.cpp - The tensor type -----------------------------------------===//
//
// Text form, verifier and arithmetic of !memscale.tensor. Destroys nothing.
//
//===----------------------------------------------------------------------===//

#include "ir/Memscale.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace memscale::ir;

#define GET_TYPEDEF_CLASSES
#include "MemscaleTypes.cpp.inc"

void MemscaleDialect::registerMemscaleTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "MemscaleTypes.cpp.inc"
      >();
}

int64_t StridedTensorType::elementBytes(StringRef dtype) {
  return llvm::StringSwitch<int64_t>(dtype)
      .Cases({"f64", "i64", "u64", "c64"}, 8)
      .Cases({"f32", "i32", "u32", "c32"}, 4)
      .Cases({"f16", "bf16", "i16", "u16"}, 2)
      .Cases({"i8", "u8", "bool", "f8e4m3fn", "f8e5m2"}, 1)
      .Case("c128", 16)
      .Default(0);
}

SmallVector<int64_t> StridedTensorType::contiguousStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * std::max<int64_t>(sizes[d + 1], 1);
  return strides;
}

int64_t StridedTensorType::getNumElements() const {
  int64_t elements = 1;
  for (int64_t size : getSizes())
    elements *= size;
  return elements;
}

int64_t StridedTensorType::getExtent() const {
  int64_t last = getOffset();
  for (auto [size, stride] : llvm::zip_equal(getSizes(), getStrides())) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

bool StridedTensorType::isDense() const {
  SmallVector<std::pair<int64_t, int64_t>> dims; // (stride, size)
  for (auto [size, stride] : llvm::zip_equal(getSizes(), getStrides())) {
    if (size == 0)
      return true;
    if (size > 1)
      dims.emplace_back(stride, size);
  }
  llvm::sort(dims);
  int64_t expected = 1;
  for (auto [stride, size] : dims) {
    if (stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

LogicalResult StridedTensorType::verify(function_ref<InFlightDiagnostic()> emitError, StringRef dtype, ArrayRef<int64_t> sizes,
                                        ArrayRef<int64_t> strides, int64_t offset, bool host) {
  if (elementBytes(dtype) == 0)
    return emitError() << "unknown dtype `" << dtype << "`; expected f32, bf16, i64, bool, ...";
  if (sizes.size() != strides.size())
    return emitError() << "expected one stride for each of " << sizes.size() << " sizes, found " << strides.size();
  if (offset < 0)
    return emitError() << "negative storage offset " << offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    if (size < 0 || stride < 0)
      return emitError() << "negative size or stride (" << size << ", " << stride << ")";
  return success();
}

Type StridedTensorType::parse(AsmParser &parser) {
  StringRef dtype;
  SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;
  bool host = false;
  if (parser.parseLess() || parser.parseKeyword(&dtype) || parser.parseLSquare())
    return {};
  if (failed(parser.parseOptionalRSquare()))
    if (parser.parseDimensionList(sizes, /*allowDynamic=*/false, /*withTrailingX=*/false) || parser.parseRSquare())
      return {};
  strides = contiguousStrides(sizes);
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    if (word == "strides") {
      strides.clear();
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                         [&] { return parser.parseInteger(strides.emplace_back()); }))
        return {};
    } else if (word == "offset") {
      if (parser.parseInteger(offset))
        return {};
    } else if (word == "host") {
      host = true;
    } else {
      parser.emitError(loc, "expected `strides`, `offset` or `host`, found `") << word << "`";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<StridedTensorType>(parser.getContext(), dtype, sizes, strides, offset, host);
}

void StridedTensorType::print(AsmPrinter &printer) const {
  printer << "<" << getDtype() << "[";
  llvm::interleave(getSizes(), printer, "x");
  printer << "]";
  if (getStrides() != ArrayRef<int64_t>(contiguousStrides(getSizes()))) {
    printer << ", strides [";
    llvm::interleaveComma(getStrides(), printer);
    printer << "]";
  }
  if (getOffset() != 0)
    printer << ", offset " << getOffset();
  if (getHost())
    printer << ", host";
  printer << ">";
}

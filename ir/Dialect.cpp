//===- Dialect.cpp - Registration and locations ----------------------------===//
//
// Registers types, attributes and operations. Source locations: the module path
// is a NameLoc around a FileLineColLoc. Destroys nothing.
//
//===----------------------------------------------------------------------===//

#include "ir/Memscale.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace memscale::ir;

#include "MemscaleDialect.cpp.inc"
#include "MemscaleEnums.cpp.inc"
#include "MemscaleInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "MemscaleAttrs.cpp.inc"

void MemscaleDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "MemscaleAttrs.cpp.inc"
      >();
  registerMemscaleTypes();
  addOperations<
#define GET_OP_LIST
#include "MemscaleOps.cpp.inc"
      >();
}

Attribute DeviceAttr::parse(AsmParser &parser, Type) {
  StringRef place;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&place) || parser.parseGreater())
    return {};
  if (place != "target" && place != "host") {
    parser.emitError(loc, "expected `target` or `host`, found `") << place << "`";
    return {};
  }
  return get(parser.getContext(), place == "host");
}

void DeviceAttr::print(AsmPrinter &printer) const { printer << "<" << (getHost() ? "host" : "target") << ">"; }

SourceLocation memscale::ir::getSourceLocation(Location loc) {
  SourceLocation source;
  if (auto name = dyn_cast<NameLoc>(loc)) {
    source.modulePath = name.getName();
    loc = name.getChildLoc();
  }
  if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    source.file = file.getFilename();
    source.line = file.getLine();
  }
  return source;
}

Location memscale::ir::makeSourceLocation(MLIRContext *context, const SourceLocation &source) {
  Location loc = UnknownLoc::get(context);
  if (!source.file.empty())
    loc = FileLineColLoc::get(context, source.file, source.line, 0);
  if (!source.modulePath.empty())
    loc = NameLoc::get(StringAttr::get(context, source.modulePath), loc);
  return loc;
}

std::string memscale::ir::describeLocation(Location loc) {
  SourceLocation source = getSourceLocation(loc);
  std::string text;
  if (!source.file.empty())
    text = source.file.str() + ":" + std::to_string(source.line);
  if (!source.modulePath.empty())
    text += (text.empty() ? "(" : " (") + source.modulePath.str() + ")";
  return text;
}

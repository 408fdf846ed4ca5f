//===- KernelOps.cpp - memscale.call and memscale.recompute ----------------===//
//
// Text form, verifier and effects of kernels. The schema arguments print in
// place, tensors as operands, so that a call reads like its ATen signature.
// Needs and destroys nothing.
//
//===----------------------------------------------------------------------===//

#include "ir/Memscale.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace memscale::ir;

//===----------------------------------------------------------------------===//
// Text form
//===----------------------------------------------------------------------===//

static void printArg(OpAsmPrinter &p, ValueRange operands, Attribute arg) {
  auto operand = [&](int32_t index) {
    if (index < 0 || index >= static_cast<int32_t>(operands.size()))
      p << "none";
    else
      p.printOperand(operands[index]);
  };
  if (auto ref = dyn_cast<RefAttr>(arg)) {
    operand(ref.getOperand());
  } else if (auto list = dyn_cast<RefListAttr>(arg)) {
    p << "[";
    llvm::interleaveComma(list.getOperands(), p, operand);
    p << "]";
  } else if (isa<UnitAttr>(arg)) {
    p << "none";
  } else if (auto number = dyn_cast<FloatAttr>(arg); number && !number.getValue().isFinite()) {
    p.printAttribute(arg);
  } else if (isa<IntegerAttr, FloatAttr, StringAttr>(arg)) {
    p.printAttributeWithoutType(arg);
  } else {
    p.printAttribute(arg);
  }
}

static ParseResult parseArg(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands, Attribute &arg) {
  MLIRContext *context = parser.getContext();
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult found = parser.parseOptionalOperand(operand);
  if (found.has_value()) {
    arg = RefAttr::get(context, operands.size());
    operands.push_back(operand);
    return *found;
  }
  if (succeeded(parser.parseOptionalKeyword("none"))) {
    arg = UnitAttr::get(context);
    return success();
  }
  if (succeeded(parser.parseOptionalLSquare())) {
    SmallVector<int32_t> list;
    if (failed(parser.parseOptionalRSquare())) {
      do {
        if (succeeded(parser.parseOptionalKeyword("none"))) {
          list.push_back(-1);
          continue;
        }
        if (parser.parseOperand(operand))
          return failure();
        list.push_back(operands.size());
        operands.push_back(operand);
      } while (succeeded(parser.parseOptionalComma()));
      if (parser.parseRSquare())
        return failure();
    }
    arg = RefListAttr::get(context, list);
    return success();
  }
  return parser.parseAttribute(arg);
}

/// One tensor for each result, in order: not printed.
static ArrayAttr plainReturns(MLIRContext *context, size_t results) {
  SmallVector<Attribute> returns;
  for (int32_t i = 0; i < static_cast<int32_t>(results); ++i)
    returns.push_back(ResultAttr::get(context, ResultKind::Tensor, ArrayRef<int32_t>(&i, 1)));
  return ArrayAttr::get(context, returns);
}

static const StringRef kPrintedAttrs[] = {"id",      "schema",  "overload", "args",     "returns",
                                          "aliases", "mutates", "rng",      "backward", "rng_slot"};

template <class Op> static void printKernel(Op op, OpAsmPrinter &p) {
  p << " " << op.getId() << " \"" << op.getSchema();
  if (!op.getOverload().empty())
    p << "." << op.getOverload();
  p << "\"(";
  llvm::interleaveComma(op.getArgs(), p, [&](Attribute arg) { printArg(p, op.getTensors(), arg); });
  p << ")";
  if (op.getReturns() != plainReturns(op.getContext(), op->getNumResults())) {
    p << " returns ";
    p.printAttribute(op.getReturns());
  }
  p << " alias [";
  llvm::interleaveComma(op.getAliases(), p, [&](Attribute attr) {
    auto alias = cast<AliasAttr>(attr);
    p << stringifyAliasKind(alias.getKind()) << "(" << alias.getValue() << ")";
  });
  p << "]";
  if (!op.getMutates().empty()) {
    p << " mutates [";
    llvm::interleaveComma(op.getMutates(), p);
    p << "]";
  }
  if (op.getRng()) {
    p << " rng";
    if (op.getRngSlot())
      p << "(" << *op.getRngSlot() << ")";
  }
  if (op.getBackward())
    p << " backward";
  p.printOptionalAttrDict(op->getAttrs(), kPrintedAttrs);
  p << " : ";
  p.printFunctionalType(op->getOperandTypes(), op->getResultTypes());
}

static ParseResult parseKernel(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  uint32_t id = 0;
  std::string name;
  if (parser.parseInteger(id) || parser.parseString(&name))
    return failure();
  result.addAttribute("id", b.getI32IntegerAttr(id));
  size_t dot = name.find('.', name.find("::") == std::string::npos ? 0 : name.find("::"));
  result.addAttribute("schema", b.getStringAttr(StringRef(name).substr(0, dot)));
  result.addAttribute("overload", b.getStringAttr(dot == std::string::npos ? "" : StringRef(name).substr(dot + 1)));

  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Attribute> args, aliases;
  SMLoc operandsLoc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&] { return parseArg(parser, operands, args.emplace_back()); }))
    return failure();
  result.addAttribute("args", b.getArrayAttr(args));
  ArrayAttr returns;
  if (succeeded(parser.parseOptionalKeyword("returns")) && parser.parseAttribute(returns))
    return failure();
  if (parser.parseKeyword("alias") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        SMLoc loc = parser.getCurrentLocation();
        StringRef word;
        int64_t value = 0;
        if (parser.parseKeyword(&word) || parser.parseLParen() || parser.parseInteger(value) || parser.parseRParen())
          return failure();
        std::optional<AliasKind> kind = symbolizeAliasKind(word);
        if (!kind)
          return parser.emitError(loc, "expected `fresh`, `operand` or `result`, found `") << word << "`";
        aliases.push_back(AliasAttr::get(b.getContext(), *kind, value));
        return success();
      }))
    return failure();
  result.addAttribute("aliases", b.getArrayAttr(aliases));
  SmallVector<int32_t> mutates;
  if (succeeded(parser.parseOptionalKeyword("mutates")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parser.parseInteger(mutates.emplace_back()); }))
    return failure();
  if (!mutates.empty())
    result.addAttribute("mutates", b.getDenseI32ArrayAttr(mutates));
  if (succeeded(parser.parseOptionalKeyword("rng"))) {
    result.addAttribute("rng", b.getUnitAttr());
    uint32_t slot = 0;
    if (succeeded(parser.parseOptionalLParen())) {
      if (parser.parseInteger(slot) || parser.parseRParen())
        return failure();
      result.addAttribute("rng_slot", b.getI32IntegerAttr(slot));
    }
  }
  if (succeeded(parser.parseOptionalKeyword("backward")))
    result.addAttribute("backward", b.getUnitAttr());
  FunctionType type;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), operandsLoc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  result.addAttribute("returns", returns ? returns : plainReturns(b.getContext(), type.getNumResults()));
  return success();
}

void CallOp::print(OpAsmPrinter &p) { printKernel(*this, p); }
ParseResult CallOp::parse(OpAsmParser &parser, OperationState &result) { return parseKernel(parser, result); }
void RecomputeOp::print(OpAsmPrinter &p) { printKernel(*this, p); }
ParseResult RecomputeOp::parse(OpAsmParser &parser, OperationState &result) { return parseKernel(parser, result); }

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

static bool isPlainArg(Attribute arg) {
  return isa<UnitAttr, IntegerAttr, FloatAttr, StringAttr, ComplexAttr, DeviceAttr, DenseI64ArrayAttr, DenseF64ArrayAttr,
             DenseBoolArrayAttr>(arg);
}

/// Each operand is named once, in order: the text form and the runtime's stack rely on it.
static LogicalResult verifyArgs(Operation *op, ArrayAttr args) {
  int32_t next = 0;
  auto take = [&](int32_t operand) -> LogicalResult {
    if (operand != next)
      return op->emitOpError("expected its arguments to name operand #") << next << " next, found #" << operand;
    ++next;
    return success();
  };
  for (auto [index, arg] : llvm::enumerate(args)) {
    if (auto ref = dyn_cast<RefAttr>(arg)) {
      if (failed(take(ref.getOperand())))
        return failure();
    } else if (auto list = dyn_cast<RefListAttr>(arg)) {
      for (int32_t operand : list.getOperands())
        if (operand != -1 && failed(take(operand)))
          return failure();
    } else if (!isPlainArg(arg)) {
      return op->emitOpError("has the schema argument #") << index << " = " << arg << ", which is no argument of a boxed call";
    }
  }
  if (next != static_cast<int32_t>(op->getNumOperands()))
    return op->emitOpError("has ") << op->getNumOperands() << " operands, its arguments name " << next;
  return success();
}

static LogicalResult verifyReturns(Operation *op, ArrayAttr returns) {
  int32_t next = 0;
  for (Attribute attr : returns) {
    auto result = dyn_cast<ResultAttr>(attr);
    if (!result)
      return op->emitOpError("expected #memscale.result among its returns, found ") << attr;
    if (result.getKind() == ResultKind::Tensor && result.getResults().size() != 1)
      return op->emitOpError("expected one result for a tensor return, found ") << result.getResults().size();
    if (result.getKind() == ResultKind::Other && !result.getResults().empty())
      return op->emitOpError("has results for a return that is no tensor");
    for (int32_t index : result.getResults())
      if (index != -1 && index != next++)
        return op->emitOpError("expected its returns to name result #") << (next - 1) << " next, found #" << index;
  }
  if (next != static_cast<int32_t>(op->getNumResults()))
    return op->emitOpError("has ") << op->getNumResults() << " results, its returns name " << next;
  return success();
}

static LogicalResult verifyAliases(KernelOpInterface kernel) {
  Operation *op = kernel;
  if (kernel.getAliases().size() != op->getNumResults())
    return op->emitOpError("has ") << op->getNumResults() << " results and " << kernel.getAliases().size() << " alias entries";
  for (auto [index, attr] : llvm::enumerate(kernel.getAliases())) {
    auto alias = dyn_cast<AliasAttr>(attr);
    if (!alias)
      return op->emitOpError("expected #memscale.alias, found ") << attr;
    auto type = cast<StridedTensorType>(op->getResult(index).getType());
    int64_t value = alias.getValue();
    if (alias.isFresh()) {
      if (value < type.getExtent() * type.getElementBytes())
        return op->emitOpError("result #") << index << " reaches " << type.getExtent() * type.getElementBytes()
                                           << " bytes into fresh memory of " << value;
      continue;
    }
    int64_t limit = alias.getKind() == AliasKind::Operand ? op->getNumOperands() : index;
    if (value < 0 || value >= limit)
      return op->emitOpError("result #") << index << " shares memory with " << stringifyAliasKind(alias.getKind()) << " #"
                                         << value << ", expected one below #" << limit;
    auto source = cast<StridedTensorType>(kernel.getAliasSource(index).getType());
    if (source.getHost() != type.getHost())
      return op->emitOpError("result #") << index << " shares memory across places";
  }
  return success();
}

/// The sum exists in autograd alone: nothing but a further addition and the return may name it.
static LogicalResult verifyAccumulation(KernelOpInterface kernel) {
  Operation *op = kernel;
  if (!kernel.getAccumulation())
    return success();
  if (!kernel.getBackward() || !kernel.getSchema().starts_with("aten::add") || op->getNumOperands() < 2 ||
      op->getNumResults() != 1)
    return op->emitOpError("is an accumulation, expected an addition of two tensors in backward");
  for (OpOperand &use : op->getResult(0).getUses()) {
    auto user = dyn_cast<KernelOpInterface>(use.getOwner());
    bool added = user && user.getAccumulation() && (use.getOperandNumber() == 0 || user->getOperand(0) == use.get());
    if (!added && !isa<FreeOp, ReturnOp>(use.getOwner()))
      return op->emitOpError("is an accumulation whose sum ") << use.getOwner()->getName() << " reads; autograd alone has it";
  }
  return success();
}

static LogicalResult verifyKernel(KernelOpInterface kernel) {
  Operation *op = kernel;
  if (!kernel.getSchema().contains("::"))
    return op->emitOpError("expected a schema name like \"aten::mm\", found \"") << kernel.getSchema() << "\"";
  if (failed(verifyArgs(op, kernel.getArgs())) || failed(verifyReturns(op, kernel.getReturns())) || failed(verifyAliases(kernel)))
    return failure();
  for (int32_t operand : kernel.getMutates())
    if (operand < 0 || operand >= static_cast<int32_t>(op->getNumOperands()))
      return op->emitOpError("mutates operand #") << operand << " of " << op->getNumOperands();
  if (kernel.getRngSlot() && !kernel.getRng())
    return op->emitOpError("has a generator slot but draws no random numbers");
  return verifyAccumulation(kernel);
}

template <class Op> static LogicalResult verifyTakesOver(Op op) {
  if (op.getTakesOver() && *op.getTakesOver() >= op->getNumOperands())
    return op.emitOpError("takes over operand #") << *op.getTakesOver() << " of " << op->getNumOperands();
  return success();
}

LogicalResult CallOp::verify() {
  if (failed(verifyKernel(*this)))
    return failure();
  return verifyTakesOver(*this);
}

LogicalResult RecomputeOp::verify() {
  if (failed(verifyKernel(*this)))
    return failure();
  if (getRng() && !getRngSlot())
    return emitOpError("draws random numbers without a slot to replay: gradients would be wrong");
  return verifyTakesOver(*this);
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static void addEffects(KernelOpInterface kernel, Effects &effects) {
  if (kernel.hasEffects())
    effects.emplace_back(MemoryEffects::Write::get());
}

void CallOp::getEffects(Effects &effects) { addEffects(*this, effects); }

// A write, so that no generic pass merges a recomputation with its call.
void RecomputeOp::getEffects(Effects &effects) { effects.emplace_back(MemoryEffects::Write::get()); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

bool memscale::ir::isView(KernelOpInterface kernel) {
  Operation *op = kernel;
  if (kernel.hasEffects() || op->getNumOperands() != 1 || op->getNumResults() == 0)
    return false;
  return llvm::none_of(kernel.getAliases(), [](Attribute alias) { return cast<AliasAttr>(alias).isFresh(); });
}

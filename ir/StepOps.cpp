//===- StepOps.cpp - memscale.step, border, free, return -------------------===//
//
// Text form and verifiers of the step and of what frames it. The step's
// verifier holds the invariants of each phase. Destroys nothing.
//
//===----------------------------------------------------------------------===//

#include "ir/Memscale.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace memscale::ir;

#define GET_OP_CLASSES
#include "MemscaleOps.cpp.inc"

//===----------------------------------------------------------------------===//
// StepOp
//===----------------------------------------------------------------------===//

BorderOp StepOp::getBorder() {
  for (Operation &op : getBlock())
    if (auto border = dyn_cast<BorderOp>(op))
      return border;
  return {};
}

ReturnOp StepOp::getReturn() { return cast<ReturnOp>(getBlock().getTerminator()); }

void StepOp::print(OpAsmPrinter &p) {
  p << " ";
  p.printSymbolName(getSymName());
  p << " " << stringifyPhase(getPhase()) << " for ";
  p.printString(getTarget());
  p << "(";
  llvm::interleave(
      llvm::zip(getBlock().getArguments(), getArguments()),
      [&](auto pair) {
        p.printNewline();
        p << "    ";
        p.printRegionArgument(std::get<0>(pair), {}, /*omitType=*/false);
        p << " ";
        p.printAttribute(std::get<1>(pair));
      },
      [&] { p << ","; });
  p << ")";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"sym_name", "phase", "target", "arguments"});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult StepOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  StringRef word;
  std::string target;
  if (parser.parseSymbolName(name, "sym_name", result.attributes))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Phase> phase = symbolizePhase(word);
  if (!phase)
    return parser.emitError(loc, "expected `captured`, `planned`, `rewritten` or `scheduled`, found `") << word << "`";
  if (parser.parseKeyword("for") || parser.parseString(&target))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> infos;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
        ArgumentAttr info;
        if (parser.parseArgument(arguments.emplace_back(), /*allowType=*/true) || parser.parseAttribute(info))
          return failure();
        infos.push_back(info);
        return success();
      }))
    return failure();
  Builder &b = parser.getBuilder();
  result.addAttribute("phase", PhaseAttr::get(b.getContext(), *phase));
  result.addAttribute("target", b.getStringAttr(target));
  result.addAttribute("arguments", b.getArrayAttr(infos));
  return failure(parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

static LogicalResult verifyArgument(StepOp step, unsigned index) {
  auto info = dyn_cast<ArgumentAttr>(step.getArguments()[index]);
  if (!info)
    return step.emitOpError("argument #") << index << " expected #memscale.argument, found " << step.getArguments()[index];
  auto type = dyn_cast<StridedTensorType>(step.getBlock().getArgument(index).getType());
  auto fault = [&](const Twine &what) { return step.emitOpError("argument `") << info.getName().getValue() << "` " << what; };
  if (!type)
    return fault("is no !memscale.tensor");
  if (info.getStorage() < 0 || info.getStorage() > index)
    return fault("shares memory with argument #" + Twine(info.getStorage()) + ", expected one up to #" + Twine(index));
  if (step.getArgumentInfo(info.getStorage()).getStorage() != info.getStorage())
    return fault("shares memory with an argument that is not the first of its memory");
  if (type.getExtent() * type.getElementBytes() > info.getBytes())
    return fault("reaches " + Twine(type.getExtent() * type.getElementBytes()) + " bytes into memory of " +
                 Twine(info.getBytes()));
  bool constant = info.getRole() == Role::Constant;
  if (constant != static_cast<bool>(info.getData()))
    return fault(constant ? "is a constant without data" : "carries data but is no constant");
  if (constant && static_cast<int64_t>(info.getData().size()) != type.getNumElements() * type.getElementBytes())
    return fault("holds " + Twine(info.getData().size()) + " bytes, its type says " +
                 Twine(type.getNumElements() * type.getElementBytes()));
  return success();
}

LogicalResult StepOp::verify() {
  if (getTarget() != "cpu" && getTarget() != "cuda")
    return emitOpError("expected the target \"cpu\" or \"cuda\", found \"") << getTarget() << "\"";
  if (getBlock().getNumArguments() != getArguments().size())
    return emitOpError("has ") << getBlock().getNumArguments() << " arguments and " << getArguments().size() << " descriptions";
  for (unsigned i = 0; i < getArguments().size(); ++i)
    if (failed(verifyArgument(*this, i)))
      return failure();
  if (getBlock().empty() || !isa<ReturnOp>(getBlock().back()))
    return emitOpError("expected memscale.return at its end");
  bool planned = getPhase() == Phase::Planned;
  if (planned != static_cast<bool>(getSchedule()))
    return emitOpError(planned ? "is planned but has no schedule" : "has a schedule but is not in the phase `planned`");
  if (getSchedule() && (!getScheduleInplace() || getScheduleInplace()->size() != getSchedule()->size()))
    return emitOpError("expected one in-place entry for each of ") << getSchedule()->size() << " runs";
  return success();
}

/// What a phase may contain, and where forward and backward calls stand.
LogicalResult StepOp::verifyRegions() {
  Phase phase = getPhase();
  BorderOp border;
  for (Operation &op : getBlock()) {
    if (auto found = dyn_cast<BorderOp>(op)) {
      if (border)
        return found.emitOpError("is the second border of the step");
      border = found;
    } else if (auto kernel = dyn_cast<KernelOpInterface>(op)) {
      bool recompute = isa<RecomputeOp>(op);
      if (recompute && phase < Phase::Rewritten)
        return op.emitOpError("must not stand in a step of the phase `") << stringifyPhase(phase) << "`";
      if (kernel.getBackward() && !border)
        return op.emitOpError("is a backward call before the border");
      if (!kernel.getBackward() && !recompute && border && !isView(kernel))
        return op.emitOpError("is the first run of a forward call behind the border");
      if (phase == Phase::Captured && op.hasAttr("decision"))
        return op.emitOpError("carries a decision in the phase `captured`");
    } else if (isa<FreeOp>(op)) {
      if (phase != Phase::Scheduled)
        return op.emitOpError("must not stand in a step of the phase `") << stringifyPhase(phase) << "`";
    } else if (!isa<ReturnOp>(op)) {
      return op.emitOpError("does not belong into memscale.step");
    }
  }
  if (!border)
    return emitOpError("expected memscale.border between forward and backward");
  return success();
}

//===----------------------------------------------------------------------===//
// BorderOp, FreeOp, ReturnOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyPositions(Operation *op, ArrayRef<int32_t> positions, StringRef what, bool allowNone,
                                     ArrayRef<Role> roles) {
  auto step = op->getParentOfType<StepOp>();
  if (!step)
    return op->emitOpError("expected to stand in memscale.step");
  for (int32_t position : positions) {
    if (allowNone && position == -1)
      continue;
    if (position < 0 || position >= static_cast<int32_t>(step.getArguments().size()))
      return op->emitOpError() << what << " names argument #" << position << " of " << step.getArguments().size();
    Role role = step.getArgumentInfo(position).getRole();
    if (!llvm::is_contained(roles, role))
      return op->emitOpError() << what << " names argument `" << step.getArgumentInfo(position).getName().getValue()
                               << "`, which is a " << stringifyRole(role);
  }
  return success();
}

LogicalResult BorderOp::verify() {
  if (getRequiresGrad().size() != getOutputs().size() || getTangents().size() != getOutputs().size())
    return emitOpError("expected one entry of requires_grad and of tangents for each of ") << getOutputs().size() << " outputs";
  if (getWritebackArguments().size() != getWritebacks().size())
    return emitOpError("expected one argument for each of ") << getWritebacks().size() << " write-backs";
  if (failed(verifyPositions(*this, getTangents(), "a tangent", true, {Role::Tangent})))
    return failure();
  return verifyPositions(*this, getWritebackArguments(), "a write-back", false, {Role::Buffer, Role::Input});
}

LogicalResult FreeOp::verify() {
  llvm::SmallPtrSet<Value, 4> seen;
  for (Value tensor : getTensors()) {
    if (isa<BlockArgument>(tensor))
      return emitOpError("frees an argument of the step");
    if (!seen.insert(tensor).second)
      return emitOpError("frees a tensor twice");
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  if (getArguments().size() != getGradients().size())
    return emitOpError("expected one argument for each of ") << getGradients().size() << " gradients";
  if (failed(verifyPositions(*this, getArguments(), "a gradient", false, {Role::Parameter, Role::Input})) ||
      failed(verifyPositions(*this, getUndefined(), "an undefined gradient", false, {Role::Parameter, Role::Input})))
    return failure();
  llvm::SmallDenseSet<int32_t> seen;
  for (ArrayRef<int32_t> list : {getArguments(), getUndefined()})
    for (int32_t position : list)
      if (!seen.insert(position).second)
        return emitOpError("has a second gradient for argument #") << position;
  return success();
}

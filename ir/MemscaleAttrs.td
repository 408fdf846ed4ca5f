// Attributes of the memscale dialect: phases, roles, the template of a call's arguments, aliases, decisions.
#ifndef MEMSCALE_ATTRS_TD
#define MEMSCALE_ATTRS_TD

include "MemscaleDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Memscale_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::memscale::ir";
  let genSpecializedAttr = 0;
}

class Memscale_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Memscale_Dialect, info, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

def Memscale_Phase : Memscale_Enum<"Phase", "how far a step has been compiled", [
  I32EnumAttrCase<"Captured", 0, "captured">, I32EnumAttrCase<"Planned", 1, "planned">,
  I32EnumAttrCase<"Rewritten", 2, "rewritten">, I32EnumAttrCase<"Scheduled", 3, "scheduled">]>;
def Memscale_PhaseAttr : Memscale_EnumAttr<Memscale_Phase, "phase">;

def Memscale_Role : Memscale_Enum<"Role", "what a step argument is", [
  I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Buffer", 1, "buffer">, I32EnumAttrCase<"Input", 2, "input">,
  I32EnumAttrCase<"Tangent", 3, "tangent">, I32EnumAttrCase<"Constant", 4, "constant">]>;

def Memscale_ResultKind : Memscale_Enum<"ResultKind", "what a schema return is", [
  I32EnumAttrCase<"Tensor", 0, "tensor">, I32EnumAttrCase<"TensorList", 1, "list">, I32EnumAttrCase<"Other", 2, "other">]>;

def Memscale_AliasKind : Memscale_Enum<"AliasKind", "where the memory of a result comes from", [
  I32EnumAttrCase<"Fresh", 0, "fresh">, I32EnumAttrCase<"Operand", 1, "operand">, I32EnumAttrCase<"Result", 2, "result">]>;

def Memscale_DecisionKind : Memscale_Enum<"DecisionKind", "what the plan does with a call's results", [
  I32EnumAttrCase<"Keep", 0, "keep">, I32EnumAttrCase<"Recompute", 1, "recompute">, I32EnumAttrCase<"InPlace", 2, "inplace">]>;

class Memscale_Attr<string name, string attrMnemonic> : AttrDef<Memscale_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Memscale_ArgumentAttr : Memscale_Attr<"Argument", "argument"> {
  let summary = "what is known of a step argument";
  let description = [{
    `storage` is the position of the first argument that has the same memory (its own position if none before it has), `bytes`
    the size of that memory. `data` holds a constant's contiguous bytes in host order, and is absent for every other role.
  }];
  let parameters = (ins
    EnumParameter<Memscale_Role>:$role,
    "::mlir::StringAttr":$name,
    "int64_t":$bytes,
    "int64_t":$storage,
    DefaultValuedParameter<"bool", "false">:$requires_grad,
    DefaultValuedParameter<"bool", "true">:$persistent,
    DefaultValuedParameter<"bool", "false">:$wrapped_number,
    OptionalParameter<"::mlir::ArrayAttr">:$aliases,
    OptionalParameter<"::mlir::StringAttr">:$data
  );
  let assemblyFormat = "`<` struct(params) `>`";
}

def Memscale_RefAttr : Memscale_Attr<"Ref", "ref"> {
  let summary = "a schema argument that is tensor operand number `operand`";
  let parameters = (ins "int32_t":$operand);
  let assemblyFormat = "`<` $operand `>`";
}

def Memscale_RefListAttr : Memscale_Attr<"RefList", "refs"> {
  let summary = "a schema argument that is a list of tensor operands; -1 is an absent element";
  let parameters = (ins OptionalArrayRefParameter<"int32_t">:$operands);
  let assemblyFormat = "`<` (`[` $operands^ `]`)? `>`";
}

def Memscale_ComplexAttr : Memscale_Attr<"Complex", "complex"> {
  let summary = "a complex number";
  let parameters = (ins "::mlir::FloatAttr":$re, "::mlir::FloatAttr":$im);
  let assemblyFormat = "`<` $re `,` $im `>`";
}

def Memscale_DeviceAttr : Memscale_Attr<"Device", "device"> {
  let summary = "a device argument: the target's device, or the host";
  let parameters = (ins "bool":$host);
  let hasCustomAssemblyFormat = 1;
}

def Memscale_ResultAttr : Memscale_Attr<"Result", "result"> {
  let summary = "one schema return: which results of the operation it holds; -1 is an undefined tensor";
  let parameters = (ins EnumParameter<Memscale_ResultKind>:$kind, OptionalArrayRefParameter<"int32_t">:$results);
  let assemblyFormat = "`<` $kind (`,` `[` $results^ `]`)? `>`";
}

def Memscale_AliasAttr : Memscale_Attr<"Alias", "alias"> {
  let summary = "the memory of a result: fresh with so many bytes, or shared with an operand or with an earlier result";
  let parameters = (ins EnumParameter<Memscale_AliasKind>:$kind, "int64_t":$value);
  let assemblyFormat = "`<` $kind `,` $value `>`";
  let extraClassDeclaration = [{
    bool isFresh() const { return getKind() == AliasKind::Fresh; }
  }];
}

def Memscale_DecisionAttr : Memscale_Attr<"Decision", "decision"> {
  let summary = "what the plan does with a call's results, and why";
  let parameters = (ins EnumParameter<Memscale_DecisionKind>:$kind, OptionalParameter<"::mlir::StringAttr">:$reason);
  let assemblyFormat = "`<` $kind (`,` $reason^)? `>`";
}

#endif // MEMSCALE_ATTRS_TD

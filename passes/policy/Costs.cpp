//===- Costs.cpp - Costs of kernels from a target profile ------------------===//
//
// Reads the profile and the workspaces beside it, and describes each kernel to
// compiler/cost: shapes, and the arguments that FLOPs depend on, which the
// schema has by position. Changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/policy/Costs.h"

#include "compiler/cost/profile.h"
#include "compiler/cost/roofline.h"
#include "compiler/cost/workspaces.h"
#include "passes/analysis/InPlaceForms.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <memory>

using namespace mlir;
using namespace memscale;
using namespace memscale::ir;
using namespace memscale::passes;

namespace {
struct NamedArgument {
  unsigned position;
  const char *name;
};

struct Sources {
  cost::Profile profile;
  std::optional<cost::Workspaces> workspaces;
};
} // namespace

/// Positions of the arguments that compiler/cost asks for, from the schemas of torch 2.11.
static ArrayRef<NamedArgument> namedArguments(StringRef schema) {
  static const NamedArgument convolution[] = {{6, "transposed"}, {8, "groups"}};
  static const NamedArgument convolutionBackward[] = {{7, "transposed"}, {9, "groups"}, {10, "output_mask"}};
  static const NamedArgument causal4[] = {{4, "is_causal"}}, causal6[] = {{6, "is_causal"}}, causal7[] = {{7, "is_causal"}},
                             causal11[] = {{11, "is_causal"}}, causal14[] = {{14, "is_causal"}};
  return llvm::StringSwitch<ArrayRef<NamedArgument>>(schema)
      .Case("aten::convolution", convolution)
      .Case("aten::convolution_backward", convolutionBackward)
      .Cases({"aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_for_cpu"}, causal4)
      .Cases({"aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"}, causal6)
      .Case("aten::_scaled_dot_product_flash_attention_for_cpu_backward", causal7)
      .Cases({"aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_efficient_attention_backward"},
             causal11)
      .Case("aten::_scaled_dot_product_cudnn_attention_backward", causal14)
      .Default({});
}

static cost::TensorShape describe(Value value) {
  auto type = cast<StridedTensorType>(value.getType());
  std::string dtype = llvm::StringSwitch<std::string>(type.getDtype())
                          .Case("f64", "float64")
                          .Case("f32", "float32")
                          .Case("f16", "float16")
                          .Case("bf16", "bfloat16")
                          .Case("f8e4m3fn", "float8_e4m3fn")
                          .Case("f8e5m2", "float8_e5m2")
                          .Case("c32", "complex32")
                          .Case("c64", "complex64")
                          .Case("c128", "complex128")
                          .Case("i64", "int64")
                          .Case("i32", "int32")
                          .Case("i16", "int16")
                          .Case("i8", "int8")
                          .Case("u8", "uint8")
                          .Case("u16", "uint16")
                          .Case("u32", "uint32")
                          .Case("u64", "uint64")
                          .Default("bool");
  return {dtype, {type.getSizes().begin(), type.getSizes().end()}};
}

static cost::OpDescription describe(KernelOpInterface kernel) {
  cost::OpDescription op;
  op.name = kernel.getSchema().str();
  op.overload = kernel.getOverload().str();
  for (Value operand : kernel->getOperands())
    op.inputs.push_back(describe(operand));
  for (Value result : kernel->getResults())
    op.outputs.push_back(describe(result));
  for (const NamedArgument &argument : namedArguments(kernel.getSchema())) {
    if (argument.position >= kernel.getArgs().size())
      continue;
    Attribute value = kernel.getArgs()[argument.position];
    if (auto flag = dyn_cast<BoolAttr>(value))
      op.ints[argument.name] = {flag.getValue()};
    else if (auto number = dyn_cast<IntegerAttr>(value))
      op.ints[argument.name] = {number.getInt()};
    else if (auto flags = dyn_cast<DenseBoolArrayAttr>(value))
      op.ints[argument.name] = {flags.asArrayRef().begin(), flags.asArrayRef().end()};
  }
  op.view = isView(kernel);
  return op;
}

/// The installed profile of a target.
static std::string builtInProfile(StringRef target) {
  const char *folder = std::getenv("MEMSCALE_TARGETS_DIR");
  SmallString<128> path(folder ? folder : MEMSCALE_SOURCE_DIR "/targets");
  llvm::sys::path::append(path, (target == "cuda" ? StringRef("h200") : target) + ".yaml");
  return path.str().str();
}

FailureOr<CostModel> memscale::passes::loadCostModel(StepOp step, const std::string &profile) {
  std::string path = profile.empty() ? builtInProfile(step.getTarget()) : profile;
  auto sources = std::make_shared<Sources>();
  auto loaded = cost::load_profile(path);
  if (!loaded)
    return step.emitError() << loaded.error().message << (loaded.error().help.empty() ? "" : "; ") << loaded.error().help;
  sources->profile = *loaded;
  if (sources->profile.device != step.getTarget())
    return step.emitError() << path << " describes a " << sources->profile.device << " target, the step was captured for "
                            << step.getTarget();
  SmallString<128> beside(path);
  llvm::sys::path::replace_extension(beside, "workspaces.yaml");
  if (llvm::sys::fs::exists(beside)) {
    auto workspaces = cost::Workspaces::load(beside.str().str());
    if (!workspaces)
      return step.emitError() << workspaces.error().message;
    sources->workspaces = std::move(*workspaces);
  }
  CostModel model;
  model.rounding_bytes = sources->profile.allocator_rounding_bytes;
  model.time_us = [sources](KernelOpInterface kernel) { return cost::estimate(sources->profile, describe(kernel)).time_us; };
  model.workspace_bytes = [sources](KernelOpInterface kernel) -> int64_t {
    if (sources->workspaces && sources->workspaces->has_workspace_entry(kernel.getSchema().str(), kernel.getOverload().str())) {
      auto bytes = sources->workspaces->bytes(describe(kernel), sources->profile);
      if (bytes)
        return *bytes;
      kernel->emitWarning() << bytes.error().message << "; its workspace is not counted";
      return -1;
    }
    return isElementwise(kernel) ? 0 : -1;
  };
  return model;
}

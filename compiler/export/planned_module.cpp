// Builds the planned module. Needs the runtime library in the process (class memscale.Plan and its operators); leaves the
// original as it is: both share submodules and tensors.
#include "compiler/export/planned_module.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/custom_class.h>

#include <set>

#include "compiler/export/wrapper_source.h"
#include "runtime/include/memscale/memscale.h"

namespace memscale::exporter {
namespace {

using torch::jit::Module;

constexpr const char* kPlanClass = "__torch__.torch.classes.memscale.Plan";
constexpr const char* kOriginal = "_memscale_original";
constexpr const char* kPlan = "_memscale_plan";

/// Resolves what the wrapper's source names: the runtime's operators, named types of the signature.
class WrapperResolver : public torch::jit::Resolver {
 public:
  WrapperResolver(const c10::FunctionSchema& schema, std::map<std::string, c10::TupleTypePtr> makers)
      : makers_(std::move(makers)) {
    for (const auto& a : schema.arguments()) collect(a.type());
    for (const auto& r : schema.returns()) collect(r.type());
  }
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction&,
                                                         const torch::jit::SourceRange&) override {
    if (name == "annotate") return torch::jit::SpecialFormValue::create(c10::prim::annotate);
    if (name == "memscale_ops") return std::make_shared<torch::jit::BuiltinModule>("memscale");
    const auto it = makers_.find(name);
    return it == makers_.end() ? nullptr : std::make_shared<torch::jit::NamedTupleConstructor>(it->second);
  }
  c10::TypePtr resolveType(const std::string& name, const torch::jit::SourceRange&) override {
    const auto it = types_.find(name);
    return it == types_.end() ? nullptr : it->second;
  }

 private:
  void collect(const c10::TypePtr& type) {
    if (const auto named = type->cast<c10::NamedType>()) {
      if (named->name() && !types_.emplace(type->annotation_str(), type).second) return;
    }
    if (type->kind() == c10::TypeKind::ClassType) return;  // modules: their attributes are no part of a signature
    for (const auto& inner : type->containedTypes()) collect(inner);
  }

  std::map<std::string, c10::TupleTypePtr> makers_;
  std::map<std::string, c10::TypePtr> types_;
};

/// True if a method of the type looks at `training`: the mode then decides what forward computes.
bool reads_mode(const c10::ClassTypePtr& type) {
  for (torch::jit::Function* method : type->methods()) {
    const auto graph = torch::jit::toGraphFunction(*method).graph();
    std::vector<const torch::jit::Block*> blocks = {graph->block()};
    while (!blocks.empty()) {
      const torch::jit::Block* block = blocks.back();
      blocks.pop_back();
      for (const torch::jit::Node* node : block->nodes()) {
        if (node->kind() == c10::prim::GetAttr && node->s(c10::attr::name) == "training") return true;
        for (const torch::jit::Block* inner : node->blocks()) blocks.push_back(inner);
      }
    }
  }
  return false;
}

void collect_modes(const Module& module, const std::string& path, std::set<const void*>& seen,
                   std::vector<std::pair<std::string, bool>>* modes) {
  if (!seen.insert(module._ivalue().get()).second) return;
  if (module.hasattr("training") && module.attr("training").isBool() && (path.empty() || reads_mode(module.type())))
    modes->emplace_back(path, module.attr("training").toBool());
  for (const auto& child : module.named_children())
    collect_modes(child.value, path.empty() ? child.name : path + "." + child.name, seen, modes);
}

class Builder {
 public:
  Builder(const import::Model& model, const fb::PlanT& plan) : model_(model), plan_(plan), old_(model.module.type()) {}

  Module run() {
    refuse_what_would_be_lost();
    Module module(*old_->name(), model_.module._ivalue()->compilation_unit(), /*shouldMangle=*/true);
    for (size_t i = 0; i < old_->numAttributes(); ++i)
      module.register_attribute(old_->getAttributeName(i), old_->getAttribute(i), model_.module._ivalue()->getSlot(i),
                                old_->is_parameter(i), old_->is_buffer(i));
    for (size_t i = 0; i < old_->numConstants(); ++i) module.type()->addConstant(old_->getConstantName(i), old_->getConstant(i));
    const auto plan_type = torch::getCustomClass(kPlanClass);
    TORCH_INTERNAL_ASSERT(plan_type, "memscale: the class memscale.Plan is not registered; link libmemscale_runtime.so");
    module.type()->addAttribute(kPlan, plan_type);
    for (torch::jit::Function* method : old_->methods()) copy_method(module, *method);
    define_forward(module);
    return module;
  }

 private:
  void refuse_what_would_be_lost() const {
    if (old_->findMethod(kOriginal) != nullptr || old_->hasAttribute(kPlan))
      throw WrapperError("the model is planned already: it has the method " + std::string(kOriginal));
    if (!old_->getForwardHooks().empty() || !old_->getForwardPreHooks().empty())
      throw WrapperError("the model has forward hooks, which a planned forward would not run");
    if (!old_->properties().empty())
      throw WrapperError("the root module has the TorchScript property '" + old_->properties()[0].name +
                         "', which cannot be kept");
  }

  bool mentions_root(const c10::TypePtr& type) const {
    if (type == old_) return true;
    if (type->kind() == c10::TypeKind::ClassType) return false;
    for (const auto& inner : type->containedTypes())
      if (mentions_root(inner)) return true;
    return false;
  }

  /// The same type with the new root's class for the old one. Types that do not mention it stay the objects they are.
  c10::TypePtr remap(const c10::TypePtr& type, const c10::TypePtr& fresh) const {
    if (type == old_) return fresh;
    if (!mentions_root(type)) return type;
    std::vector<c10::TypePtr> inner;
    for (const auto& t : type->containedTypes()) inner.push_back(remap(t, fresh));
    return type->withContained(std::move(inner));
  }

  void copy_method(Module& module, torch::jit::Function& method) const {
    const c10::TypePtr fresh = module.type();
    const auto map = [&](c10::TypePtr type) { return remap(type, fresh); };
    auto graph = torch::jit::toGraphFunction(method).graph()->copy();
    graph->remapTypes(map);
    const std::string name = method.name() == "forward" ? kOriginal : method.name();
    auto* copied =
        model_.module._ivalue()->compilation_unit()->create_function(c10::QualifiedName(*module.type()->name(), name), graph);
    module.type()->addMethod(copied);
    copied->setSchema(method.getSchema().cloneWithRemappedTypes(map));
  }

  void define_forward(Module& module) const {
    const c10::FunctionSchema& original = module.type()->getMethod(kOriginal).getSchema();
    WrapperRequest request;
    request.original = &original;
    request.flat = model_.info.format == "torch.export";
    request.input_structure = plan_.input_structure;
    request.output_structure = plan_.output_structure;
    request.output_count = plan_.outputs.size();
    for (const auto& a : plan_.arguments) {
      if (a->role == fb::Role::Input) ++request.input_count;
      if (a->role == fb::Role::Parameter) request.parameters.push_back(a->name);
      if (a->role == fb::Role::Buffer) request.buffers.push_back(a->name);
    }
    std::set<const void*> seen;
    collect_modes(model_.module, "", seen, &request.modes);
    const WrapperSource source = write_wrapper(request);
    try {
      module.define(source.text, std::make_shared<WrapperResolver>(original, source.named_tuples));
    } catch (const std::exception& e) {
      throw WrapperError(std::string("forward's signature cannot be rebuilt in TorchScript: ") + e.what());
    }
    // Names and types are the same by construction; the copy brings the default values.
    torch::jit::Function& forward = module.type()->getMethod("forward");
    forward.setSchema(forward.getSchema().cloneWithArguments(original.arguments()));
  }

  const import::Model& model_;
  const fb::PlanT& plan_;
  c10::ClassTypePtr old_;
};

}  // namespace

Module make_planned_module(const import::Model& model, const fb::PlanT& plan) {
  TORCH_INTERNAL_ASSERT(runtime_version() != nullptr);  // keeps the runtime library linked: it registers the class
  return Builder(model, plan).run();
}

void set_plan(Module& module, const std::vector<uint8_t>& bytes) {
  at::Tensor tensor = at::from_blob(const_cast<uint8_t*>(bytes.data()), {static_cast<int64_t>(bytes.size())}, at::kByte);
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("memscale::make_plan", "");
  torch::jit::Stack stack = {tensor};
  op.callBoxed(stack);
  module.setattr(kPlan, std::move(stack[0]));
}

}  // namespace memscale::exporter

// The TorchScript class memscale.Plan and the operators memscale::*. The compiler's library adds its own to the same namespace
// with TORCH_LIBRARY_FRAGMENT. Registration happens when the library is loaded.
#include <torch/library.h>

#include "runtime/core/accounting.h"
#include "runtime/core/guards.h"
#include "runtime/torch/archive_reader.h"
#include "runtime/torch/autograd.h"
#include "runtime/torch/plan_object.h"

namespace memscale::runtime {
namespace {

using Handle = c10::intrusive_ptr<PlanObject>;

c10::Dict<std::string, int64_t> to_dict(const std::map<std::string, int64_t>& map) {
  c10::Dict<std::string, int64_t> dict;
  for (const auto& [key, value] : map) dict.insert(key, value);
  return dict;
}

c10::Dict<std::string, std::string> to_dict(const std::map<std::string, std::string>& map) {
  c10::Dict<std::string, std::string> dict;
  for (const auto& [key, value] : map) dict.insert(key, value);
  return dict;
}

std::string why_not(const Handle& plan, at::TensorList parameters, at::TensorList buffers, at::TensorList inputs) {
  return at_border([&] {
    const std::string why = plan->guard_mismatch();
    return why.empty() ? plan->argument_mismatch(parameters, buffers, inputs) : why;
  });
}

std::vector<std::string> names(const PlanObject& plan, const std::vector<int32_t>& indices) {
  std::vector<std::string> result;
  for (int32_t index : indices) result.push_back(plan.plan().arguments[index]->name);
  return result;
}

/// (name, dtype, sizes, strides, requires_grad) of each input.
std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, std::vector<int64_t>, bool>> input_specs(
    const Handle& self) {
  std::vector<std::tuple<std::string, std::string, std::vector<int64_t>, std::vector<int64_t>, bool>> specs;
  for (int32_t index : self->inputs()) {
    const auto& a = *self->plan().arguments[index];
    specs.emplace_back(a.name, a.meta->dtype, a.meta->sizes, a.meta->strides, a.requires_grad);
  }
  return specs;
}

std::vector<std::string> non_persistent_buffers(const Handle& self) {
  std::vector<std::string> result;
  for (int32_t index : self->buffers())
    if (!self->plan().arguments[index]->persistent) result.push_back(self->plan().arguments[index]->name);
  return result;
}

c10::Dict<std::string, std::vector<std::string>> aliases(const Handle& self) {
  c10::Dict<std::string, std::vector<std::string>> result;
  for (const auto& a : self->plan().arguments)
    if (!a->aliases.empty()) result.insert(a->name, a->aliases);
  return result;
}

void register_plan(torch::Library& m) {
  m.class_<PlanObject>("Plan")
      .def(torch::init<at::Tensor>())
      .def("bytes", [](const Handle& self) { return self->bytes().clone(); })
      .def("target", [](const Handle& self) { return self->plan().target; })
      .def("target_profile", [](const Handle& self) { return self->plan().target_profile; })
      .def("producer", [](const Handle& self) { return self->plan().producer; })
      .def("torch_version", [](const Handle& self) { return self->plan().torch_version; })
      .def("predicted_peak_bytes", [](const Handle& self) { return self->plan().predicted_peak_bytes; })
      .def("predicted_eager_peak_bytes", [](const Handle& self) { return self->plan().predicted_eager_peak_bytes; })
      .def("predicted_time_us", [](const Handle& self) { return self->plan().predicted_time_us; })
      .def("report", [](const Handle& self) { return self->plan().report; })
      .def("input_structure", [](const Handle& self) { return self->plan().input_structure; })
      .def("output_structure", [](const Handle& self) { return self->plan().output_structure; })
      .def("memory_stats", [](const Handle& self) { return to_dict(self->memory_stats()); })
      .def("parameter_names", [](const Handle& self) { return names(*self, self->parameters()); })
      .def("buffer_names", [](const Handle& self) { return names(*self, self->buffers()); })
      .def("non_persistent_buffers", &non_persistent_buffers)
      .def("input_names", [](const Handle& self) { return names(*self, self->inputs()); })
      .def("input_specs", &input_specs)
      .def("aliases", &aliases)
      .def("state_names", [](const Handle& self) { return self->plan().state_names; })
      .def("guards",
           [](const Handle& self) {
             std::map<std::string, std::string> guards;
             for (const auto& guard : self->plan().guards) guards[guard->name] = guard->value;
             return to_dict(guards);
           })
      .def_pickle([](const Handle& self) { return self->bytes(); },
                  [](at::Tensor bytes) { return c10::make_intrusive<PlanObject>(std::move(bytes)); });
}

// Everything here has effects or depends on the process's state: the alias analysis must not merge, move or drop a call.
template <class F>
void define(torch::Library& m, const char* schema, F function) {
  m.def(torch::schema(schema, c10::AliasAnalysisKind::CONSERVATIVE), function);
}

TORCH_LIBRARY(memscale, m) {
  register_plan(m);
  define(m, "run(__torch__.torch.classes.memscale.Plan plan, Tensor[] params, Tensor[] buffers, Tensor[] inputs) -> Tensor[]",
         [](const Handle& plan, at::TensorList params, at::TensorList buffers, at::TensorList inputs) {
           return run_plan(plan, params, buffers, inputs);
         });
  define(m, "guards_ok(__torch__.torch.classes.memscale.Plan plan, Tensor[] params, Tensor[] buffers, Tensor[] inputs) -> bool",
         [](const Handle& plan, at::TensorList params, at::TensorList buffers, at::TensorList inputs) {
           const std::string why = why_not(plan, params, buffers, inputs);
           if (!why.empty()) plan->note_fallback(why);
           return why.empty();
         });
  define(m,
         "guard_failure(__torch__.torch.classes.memscale.Plan plan, Tensor[] params, Tensor[] buffers, Tensor[] inputs) -> str",
         &why_not);
  define(m, "note_fallback(__torch__.torch.classes.memscale.Plan plan, str reason) -> ()",
         [](const Handle& plan, const std::string& reason) { plan->note_fallback(reason); });
  define(m, "memory_stats(__torch__.torch.classes.memscale.Plan plan) -> Dict(str, int)",
         [](const Handle& plan) { return to_dict(plan->memory_stats()); });
  define(m, "load_archive(str path, bool load_weights) -> (__torch__.torch.classes.memscale.Plan, Tensor[], Tensor[])",
         [](const std::string& path, bool load_weights) {
           LoadedArchive archive = load_archive(path, load_weights);
           return std::make_tuple(archive.plan, archive.parameters, archive.buffers);
         });
  define(m, "make_plan(Tensor bytes) -> __torch__.torch.classes.memscale.Plan",
         [](const at::Tensor& bytes) { return c10::make_intrusive<PlanObject>(bytes); });
  define(m, "capture_guards(str target) -> Dict(str, str)",
         [](const std::string& target) { return to_dict(capture_guards(target)); });
  define(m, "accounting_begin() -> ()", [] { accounting_begin(); });
  define(m, "accounting_current() -> int", [] { return accounting_current(); });
  define(m, "accounting_peak() -> int", [] { return accounting_peak(); });
  define(m, "accounting_end() -> int", [] { return accounting_end(); });
}

}  // namespace
}  // namespace memscale::runtime

// memscalec inspect: what a planned archive holds.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "compiler/driver/bytes.h"
#include "compiler/driver/shape.h"
#include "tools/memscalec/command_line.h"
#include "tools/memscalec/plan_file.h"
#include "tools/memscalec/terminal.h"

namespace memscale::cli {
namespace {

using json = nlohmann::ordered_json;
using driver::print_bytes;

std::string layout(const fb::TensorMetaT& meta) {
  std::string text = driver::torch_dtype_name(meta.dtype) + " [";
  for (size_t d = 0; d < meta.sizes.size(); ++d) text.append(d == 0 ? "" : ", ").append(std::to_string(meta.sizes[d]));
  return text + "]";
}

size_t count(const fb::PlanT& plan, fb::Role role) {
  size_t n = 0;
  for (const auto& argument : plan.arguments) n += argument->role == role;
  return n;
}

size_t reruns(const std::vector<std::unique_ptr<fb::InstrT>>& instructions) {
  size_t n = 0;
  for (const auto& instruction : instructions) n += instruction->recompute;
  return n;
}

json tensor_json(const std::string& name, const fb::TensorMetaT& meta) {
  return {{"name", name}, {"dtype", driver::torch_dtype_name(meta.dtype)}, {"sizes", meta.sizes}, {"strides", meta.strides}};
}

json to_json(const PlanFile& file) {
  const fb::PlanT& plan = file.plan;
  json root;
  root["schema"] = "memscale.inspect/1";
  root["producer"] = plan.producer;
  root["plan_version"] = plan.version;
  root["torch"] = plan.torch_version;
  root["target"] = plan.target;
  root["target_profile"] = plan.target_profile;
  root["file_bytes"] = file.file_bytes;
  root["plan_bytes"] = file.plan_bytes;
  root["has_weights"] = file.has_weights;
  root["predicted_peak_bytes"] = plan.predicted_peak_bytes;
  root["predicted_eager_peak_bytes"] = plan.predicted_eager_peak_bytes;
  root["predicted_time_us"] = plan.predicted_time_us;
  root["parameters"] = count(plan, fb::Role::Parameter);
  root["buffers"] = count(plan, fb::Role::Buffer);
  root["inputs"] = json::array();
  for (const auto& argument : plan.arguments) {
    if (argument->role == fb::Role::Input) root["inputs"].push_back(tensor_json(argument->name, *argument->meta));
  }
  root["outputs"] = json::array();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    json output =
        plan.outputs[i]->meta ? tensor_json(std::to_string(i), *plan.outputs[i]->meta) : json{{"name", std::to_string(i)}};
    output["differentiated"] = plan.outputs[i]->tangent >= 0;
    root["outputs"].push_back(std::move(output));
  }
  root["instructions"] = {{"forward", plan.forward.size()},
                          {"backward", plan.backward.size()},
                          {"recomputed", reruns(plan.forward) + reruns(plan.backward)}};
  root["segments"] = json::array();
  for (const auto& segment : plan.segments) {
    root["segments"].push_back(
        {{"name", segment->name}, {"instructions", segment->end - segment->begin}, {"gradients", segment->gradients.size()}});
  }
  root["guards"] = json::object();
  for (const auto& guard : plan.guards) root["guards"][guard->name] = guard->value;
  root["report"] = json::parse(plan.report, nullptr, /*allow_exceptions=*/false);
  if (root["report"].is_discarded()) root["report"] = nullptr;
  return root;
}

/// report[group][key] if both are there; an archive may hold anything.
const json* find(const json& report, const char* group, const char* key) {
  if (!report.is_object() || !report.contains(group)) return nullptr;
  const json& inner = report[group];
  return inner.is_object() && inner.contains(key) ? &inner[key] : nullptr;
}

std::string text_of(const json* value) { return value != nullptr && value->is_string() ? value->get<std::string>() : ""; }
int64_t number_of(const json* value) { return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : 0; }

/// What the compiler's report says, where the archive carries one.
std::string report_lines(const json& report) {
  if (!report.is_object()) return "report: none\n";
  std::string text = "budget: " + text_of(find(report, "budget", "text"));
  if (const int64_t bytes = number_of(find(report, "budget", "bytes")); bytes > 0) text += " = " + print_bytes(bytes);
  text += "\noptimizer: " + text_of(find(report, "optimizer", "name")) + ", " +
          print_bytes(number_of(find(report, "optimizer", "state_bytes"))) + " of state\ndecisions:";
  for (const char* kind : {"recompute", "inplace", "keep"}) {
    const json* entry = find(report, "counts", kind);
    if (entry == nullptr || !entry->is_object() || !entry->contains("count") || !entry->contains("bytes")) continue;
    text += std::string(" ") + kind + " " + std::to_string(number_of(&(*entry)["count"])) + " (" +
            print_bytes(number_of(&(*entry)["bytes"])) + ")";
  }
  return text + "\n";
}

std::string to_text(const PlanFile& file) {
  const fb::PlanT& plan = file.plan;
  std::string text = "planned by " + plan.producer + " for " + plan.target +
                     (plan.target_profile.empty() ? "" : " (profile " + plan.target_profile + ")") + ", torch " +
                     plan.torch_version + "\n";
  text += "file: " + print_bytes(static_cast<int64_t>(file.file_bytes)) + ", plan " +
          print_bytes(static_cast<int64_t>(file.plan_bytes)) + (file.has_weights ? "" : ", without weights") + "\n";
  text += "predicted peak: " + print_bytes(plan.predicted_peak_bytes) + ", in eager " +
          print_bytes(plan.predicted_eager_peak_bytes) + "\n";
  text += report_lines(json::parse(plan.report, nullptr, false));
  text += "parameters: " + std::to_string(count(plan, fb::Role::Parameter)) +
          ", buffers: " + std::to_string(count(plan, fb::Role::Buffer)) + "\n";
  for (const auto& argument : plan.arguments) {
    if (argument->role == fb::Role::Input) {
      text +=
          "input " + argument->name + ": " + layout(*argument->meta) + (argument->requires_grad ? ", requires grad" : "") + "\n";
    }
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const fb::OutputT& output = *plan.outputs[i];
    text += "output " + std::to_string(i) + ": " + (output.meta ? layout(*output.meta) : "an argument") +
            (output.tangent >= 0    ? ", differentiated"
             : output.requires_grad ? ", its gradient is not planned"
                                    : "") +
            "\n";
  }
  text += "instructions: " + std::to_string(plan.forward.size()) + " forward, " + std::to_string(plan.backward.size()) +
          " backward, of them " + std::to_string(reruns(plan.forward) + reruns(plan.backward)) + " recomputed\n";
  text += "segments of backward: " + std::to_string(plan.segments.size()) + "\n";
  for (const auto& segment : plan.segments) {
    text += "  " + (segment->name.empty() ? std::string("(no name)") : segment->name) + ": " +
            std::to_string(segment->end - segment->begin) + " instructions, " + std::to_string(segment->gradients.size()) +
            " gradients\n";
  }
  text += "guards:";
  for (const auto& guard : plan.guards) text += " " + guard->name + "=" + guard->value;
  return text + "\n";
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  CLI::App app("Prints what a planned archive holds: target, peaks, decisions, inputs, outputs, segments, guards.",
               "memscalec inspect");
  std::string path;
  bool as_json = false;
  app.add_option("archive", path, "planned archive, NAME.ms.pt")->required()->type_name("FILE");
  app.add_flag("--json", as_json, "as JSON (memscale.inspect/1), the compiler's report included");
  if (const int code = parse(app, arguments); code >= 0) return code;
  Expected<PlanFile> file = read_plan_file(path);
  if (!file) return report_error(file.error());
  const std::string text = as_json ? to_json(*file).dump(2, ' ', false, json::error_handler_t::replace) + "\n" : to_text(*file);
  return print_result(text) ? 0 : report_error({Exit::kUsage, "standard output cannot be written", ""});
}

}  // namespace memscale::cli

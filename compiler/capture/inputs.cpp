// Matching of --shape with the inputs of forward. Needs the structure JSON of the importer.
#include "compiler/capture/inputs.h"

#include <map>
#include <nlohmann/json.hpp>

#include "compiler/capture/dtype_names.h"
#include "compiler/capture/recorder.h"

namespace memscale::capture {
namespace {

using nlohmann::json;

class Settler {
 public:
  Settler(const import::ModelInfo& info, const std::vector<InputSpec>& given) : info_(info) {
    size_t next = 0;
    for (InputSpec spec : given) {
      if (spec.name.empty()) spec.name = next < info.inputs.size() ? info.inputs[next++].name : "";
      const bool number =
          !spec.name.empty() && spec.name.size() < 6 && spec.name.find_first_not_of("0123456789") == std::string::npos;
      if (number && std::stoul(spec.name) < info.inputs.size()) spec.name = info.inputs[std::stoul(spec.name)].name;
      if (!dtype_from_name(spec.dtype))
        throw CaptureFault(Exit::kUsage, "--shape " + spec.name + ": unknown dtype '" + spec.dtype + "'");
      if (spec.name.empty()) throw CaptureFault(Exit::kUsage, "more --shape options than inputs (" + input_names() + ")");
      if (!given_.emplace(spec.name, spec).second) throw CaptureFault(Exit::kUsage, "--shape " + spec.name + " is given twice");
    }
  }

  json settle(const json& node, const std::string& name) {
    if (node.contains("leaf")) return settle_leaf(node);
    if (node.contains("missing"))
      throw CaptureFault(Exit::kUsage,
                         "input " + name + " of type " + node["missing"].get<std::string>() +
                             " has no default and is no tensor: no option can give its value",
                         "make it an attribute of the module, or give it a default, before exporting");
    if (node.value("open", false)) return node.contains("list") ? settle_list(name) : settle_dict(name);
    json settled = node;
    for (const char* key : {"tuple", "list", "children"}) {
      if (!node.contains(key)) continue;
      for (size_t i = 0; i < node[key].size(); ++i) settled[key][i] = settle(node[key][i], name + "." + std::to_string(i));
    }
    if (node.contains("dict"))
      for (const auto& [key, child] : node["dict"].items()) settled["dict"][key] = settle(child, name + "." + key);
    return settled;
  }

  std::vector<InputSpec> finish() {
    if (!given_.empty())
      throw CaptureFault(Exit::kUsage,
                         "--shape '" + given_.begin()->first + "' names no input of forward; the inputs are: " + input_names());
    if (!missing_.empty())
      throw CaptureFault(Exit::kUsage, "the archive does not say the shape of: " + missing_,
                         "give --shape NAME=SIZESxSIZES:DTYPE for each, for example --shape " +
                             missing_.substr(0, missing_.find(',')) + "=8x128:int64");
    return std::move(specs_);
  }

 private:
  std::string input_names() const {
    std::string names;
    for (const auto& input : info_.inputs) names += (names.empty() ? "" : ", ") + input.name;
    return names;
  }

  json push(InputSpec spec) {
    specs_.push_back(std::move(spec));
    return {{"leaf", specs_.size() - 1}};
  }

  void miss(const std::string& name) { missing_ += (missing_.empty() ? "" : ", ") + name; }

  json settle_leaf(const json& node) {
    const import::InputInfo& input = info_.inputs.at(node["leaf"].get<size_t>());
    const auto found = given_.find(input.name);
    InputSpec spec{input.name, input.sizes, input.dtype, false};
    if (found == given_.end() && !input.shape_known) {
      if (node.value("optional", false)) return {{"none", true}};
      miss(input.name);
    }
    if (found != given_.end()) {
      if (input.shape_known && (found->second.sizes != input.sizes || found->second.dtype != input.dtype))
        throw CaptureFault(Exit::kUsage,
                           "--shape " + input.name + " contradicts the archive, whose graph is specialised to its own shapes",
                           "leave the option out, or export the model with the shapes that are wanted");
      spec = found->second;
      given_.erase(found);
    }
    json settled = push(std::move(spec));
    if (node.value("optional", false)) settled["optional"] = true;
    return settled;
  }

  json settle_list(const std::string& name) {
    json elements = json::array();
    for (size_t i = 0;; ++i) {
      const auto found = given_.find(name + "." + std::to_string(i));
      if (found == given_.end()) break;
      elements.push_back(push(found->second));
      given_.erase(found);
    }
    if (elements.empty()) miss(name + ".0");
    return {{"list", elements}};
  }

  json settle_dict(const std::string& name) {
    json elements = json::object();
    for (auto entry = given_.lower_bound(name + "."); entry != given_.end() && entry->first.starts_with(name + ".");) {
      elements[entry->first.substr(name.size() + 1)] = push(entry->second);
      entry = given_.erase(entry);
    }
    if (elements.empty()) miss(name + ".KEY");
    return {{"dict", elements}};
  }

  const import::ModelInfo& info_;
  std::map<std::string, InputSpec> given_;
  std::vector<InputSpec> specs_;
  std::string missing_;
};

}  // namespace

SettledInputs settle_inputs(const import::Model& model, const std::vector<InputSpec>& given) {
  Settler settler(model.info, given);
  json structure = json::parse(model.input_structure);
  const json names = structure.value("names", json::array());
  json& args = structure["args"];
  for (size_t i = 0; i < args.size(); ++i)
    args[i] = settler.settle(args[i], i < names.size() ? names[i].get<std::string>() : std::to_string(i));
  if (structure.contains("kwargs"))
    for (auto& [name, child] : structure["kwargs"].items()) child = settler.settle(child, name);
  return {settler.finish(), structure.dump()};
}

}  // namespace memscale::capture

// Treespecs of protocol 1. Needs nlohmann/json; destroys nothing.
#include "compiler/import/pt2_structure.h"

namespace memscale::import {
namespace {

OrderedJson convert(const Json& node, NamedTupleFields fields, const NextLeaf& next) {
  const Json& children = array_of(member(node, "children_spec"), "children_spec");
  const Json* type = find_member(node, "type");
  if (type == nullptr) {
    if (!children.empty()) broken("a leaf of a tree specification has children");
    return next();
  }
  const std::string& name = text_of(*type, "type");
  const Json* raw_context = find_member(node, "context");
  OrderedJson context;
  if (raw_context != nullptr) {
    const std::string& text = text_of(*raw_context, "context");
    // Most contexts are JSON; a registered class may write any text.
    if (name.rfind("builtins.", 0) == 0 || Json::accept(text)) {
      parse_json(text, "a tree specification's context");
      context = OrderedJson::parse(text);
    } else {
      context = text;
    }
  }
  if (name == "builtins.dict" || name == "collections.OrderedDict") {
    const OrderedJson& keys = context;
    if (!keys.is_array() || keys.size() != children.size())
      broken("a dict of a tree specification has not one key for each child");
    bool plain = name == "builtins.dict";
    OrderedJson dict = OrderedJson::object();
    for (size_t i = 0; i < keys.size() && plain; ++i) {
      plain = keys[i].is_string() && dict.emplace(keys[i].get<std::string>(), nullptr).second;
    }
    if (plain) {
      for (size_t i = 0; i < keys.size(); ++i) dict[keys[i].get<std::string>()] = convert(children[i], fields, next);
      return {{"dict", std::move(dict)}};
    }
  }
  OrderedJson list = OrderedJson::array();
  for (const Json& child : children) list.push_back(convert(child, fields, next));
  if (name == "builtins.tuple") return {{"tuple", std::move(list)}};
  if (name == "builtins.list") return {{"list", std::move(list)}};
  if (name == "collections.namedtuple" && context.is_string()) {
    const Json* known = fields == nullptr ? nullptr : find_member(*fields, context.get_ref<const std::string&>().c_str());
    if (known == nullptr) broken("the fields of the named tuple '" + context.get<std::string>() + "' are missing");
    OrderedJson keys = OrderedJson::array();
    for (const Json& key : array_of(member(*known, "field_names"), "field_names")) keys.push_back(text_of(key, "field name"));
    return {{"type", context}, {"context", "namedtuple"}, {"keys", std::move(keys)}, {"children", std::move(list)}};
  }
  return {{"type", name}, {"context", std::move(context)}, {"children", std::move(list)}};
}

Json root_of(const std::string& spec, const std::string& what) {
  Json parsed = parse_json(spec, what);
  if (!parsed.is_array() || parsed.size() != 2 || integer_of(parsed[0], "tree specification version") != 1) {
    fail(Exit::kUnsupported, what + " is a tree specification of an unknown version: expected version 1",
         "save the archive again with PyTorch 2.11");
  }
  return parsed[1];
}

}  // namespace

OrderedJson structure_of_spec(const std::string& spec, const std::string& what, NamedTupleFields fields, const NextLeaf& next) {
  return convert(root_of(spec, what), fields, next);
}

OrderedJson input_structure_of_spec(const std::string& spec, const Json* names, NamedTupleFields fields, const NextLeaf& next) {
  OrderedJson whole = convert(root_of(spec, "in_spec"), fields, next);
  auto tuple = whole.find("tuple");
  if (tuple == whole.end() || tuple->size() != 2 || !(*tuple)[0].contains("tuple") || !(*tuple)[1].contains("dict")) {
    broken("in_spec is not a tuple of positional and a dict of keyword arguments");
  }
  OrderedJson out = {{"names", OrderedJson::array()}, {"args", (*tuple)[0]["tuple"]}, {"kwargs", (*tuple)[1]["dict"]}};
  if (names != nullptr) {
    for (const Json& name : array_of(*names, "forward_arg_names")) out["names"].push_back(text_of(name, "forward_arg_names"));
  }
  return out;
}

}  // namespace memscale::import

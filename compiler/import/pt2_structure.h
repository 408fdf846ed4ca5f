// Python structures of inputs and outputs: pytree specs → the JSON of docs/formats/pt2.md.
// Needs nlohmann/json; destroys nothing.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/import/pt2_json.h"

namespace memscale::import {

using OrderedJson = nlohmann::ordered_json;

/// What stands at the next leaf of the flattened structure.
using NextLeaf = std::function<OrderedJson()>;

/// Field names of named tuples by serialized type name; null if the archive has none.
using NamedTupleFields = const Json*;

/// `spec` is a serialized TreeSpec, `[1, {...}]`. Calls `next` once per leaf, in order.
OrderedJson structure_of_spec(const std::string& spec, const std::string& what, NamedTupleFields fields, const NextLeaf& next);

/// The same for in_spec, split into positional and keyword arguments.
OrderedJson input_structure_of_spec(const std::string& spec, const Json* names, NamedTupleFields fields, const NextLeaf& next);

}  // namespace memscale::import

// JSON of torch.export archives: parsed under limits, read through functions that fail with what was expected.
// Needs nlohmann/json. Failures inside the pt2 reader travel as the exception Failure and end at open_pt2's border.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::import {

using Json = nlohmann::json;

struct Failure : std::exception {
  explicit Failure(Error e) : error(std::move(e)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

[[noreturn]] void fail(Exit code, std::string message, std::string help = "");
/// kUnsafe: what the file says contradicts itself or the format.
[[noreturn]] void broken(const std::string& message);

/// Parses text under a limit on depth. `keys`, if given, takes the keys of the object at depth 2 in file order.
Json parse_json(const std::string& text, const std::string& what, std::vector<std::string>* keys = nullptr);

const Json& member(const Json& object, const char* key);
/// Null if the key is absent or holds null.
const Json* find_member(const Json& object, const char* key);
const std::string& text_of(const Json& value, const char* what);
int64_t integer_of(const Json& value, const char* what);
bool boolean_of(const Json& value, const char* what);
/// "Infinity", "-Infinity" and "NaN" are numbers too.
double real_of(const Json& value, const char* what);
const Json& array_of(const Json& value, const char* what);
const Json& object_of(const Json& value, const char* what);
/// The one member of a serialized union: its tag and its value.
std::pair<const std::string&, const Json&> union_of(const Json& value, const char* what);

}  // namespace memscale::import

// Guarded access to the JSON of a torch.export archive. Needs nlohmann/json; destroys nothing.
#include "compiler/import/pt2_json.h"

#include <cmath>
#include <limits>

namespace memscale::import {
namespace {

constexpr int kDepth = 512;

std::string shown(const Json& value) {
  std::string text =
      value.is_structured() ? std::string(value.type_name()) : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 80 ? text.substr(0, 80) + "..." : text;
}

[[noreturn]] void wrong(const char* what, const char* expected, const Json& found) {
  broken(std::string(what) + ": expected " + expected + ", found " + shown(found));
}

}  // namespace

void fail(Exit code, std::string message, std::string help) { throw Failure(Error{code, std::move(message), std::move(help)}); }

void broken(const std::string& message) {
  fail(Exit::kUnsafe, "the exported program is broken: " + message,
       "write the archive again with torch.export.save; if it comes from elsewhere, do not trust it");
}

Json parse_json(const std::string& text, const std::string& what, std::vector<std::string>* keys) {
  Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDepth) broken(what + " is nested more than " + std::to_string(kDepth) + " deep");
    if (keys != nullptr && depth == 2 && event == Json::parse_event_t::key) keys->push_back(parsed.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& e) {
    broken(what + " is no JSON: " + e.what());
  }
}

const Json* find_member(const Json& object, const char* key) {
  if (!object.is_object()) wrong(key, "an object that holds it", object);
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

const Json& member(const Json& object, const char* key) {
  const Json* found = find_member(object, key);
  if (found == nullptr) broken(std::string("field '") + key + "' is missing");
  return *found;
}

const std::string& text_of(const Json& value, const char* what) {
  if (!value.is_string()) wrong(what, "a string", value);
  return value.get_ref<const std::string&>();
}

int64_t integer_of(const Json& value, const char* what) {
  if (!value.is_number_integer()) wrong(what, "an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    wrong(what, "a 64-bit integer", value);
  }
  return value.get<int64_t>();
}

bool boolean_of(const Json& value, const char* what) {
  if (!value.is_boolean()) wrong(what, "true or false", value);
  return value.get<bool>();
}

double real_of(const Json& value, const char* what) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  wrong(what, "a number", value);
}

const Json& array_of(const Json& value, const char* what) {
  if (!value.is_array()) wrong(what, "an array", value);
  return value;
}

const Json& object_of(const Json& value, const char* what) {
  if (!value.is_object()) wrong(what, "an object", value);
  return value;
}

std::pair<const std::string&, const Json&> union_of(const Json& value, const char* what) {
  if (!value.is_object() || value.size() != 1) wrong(what, "an object with one member", value);
  return {value.begin().key(), value.begin().value()};
}

}  // namespace memscale::import

// See json_reader.h.
#include "compiler/planner/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <set>

namespace memscale::planner {
namespace {

using nlohmann::json;

struct Refused : std::exception {
  explicit Refused(std::string text) : text(std::move(text)) {}
  std::string text;
};

std::string position(std::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<int64_t>(byte), '\n') + 1;
  const size_t start = text.rfind('\n', byte == 0 ? 0 : byte - 1);
  const size_t column = start == std::string_view::npos || byte == 0 ? byte : byte - start - 1;
  return std::to_string(line) + ":" + std::to_string(column + 1);
}

std::string kind(const json& value) {
  if (value.is_number_integer()) return "the integer " + value.dump().substr(0, 24);
  if (value.is_number_float()) return "the number " + value.dump().substr(0, 24);
  return value.type_name();
}

std::string range(int64_t least, int64_t most) {
  return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

Expected<json> parse_json(std::string_view text, const std::string& where) {
  if (text.size() > kMaxJsonBytes)
    return Error{
        Exit::kUnsafe,
        where + ": " + std::to_string(text.size()) + " bytes of JSON, at most " + std::to_string(kMaxJsonBytes) + " are read",
        ""};
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMaxJsonDepth) throw Refused("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
      if (event == json::parse_event_t::object_start) keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw Refused("the key " + quote(parsed.get<std::string>()) + " appears twice in one object");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), guard);
  } catch (const Refused& refused) {
    return Error{Exit::kUnsafe, where + ": " + refused.text, ""};
  } catch (const json::parse_error& e) {
    return Error{Exit::kUnsupported, where + ":" + position(text, e.byte == 0 ? 0 : e.byte - 1) + ": not valid JSON: " + e.what(),
                 ""};
  } catch (const json::exception& e) {
    return Error{Exit::kUnsupported, where + ": not valid JSON: " + std::string(e.what()), ""};
  }
}

void JsonReader::fail(const std::string& path, const std::string& text, Exit code) {
  if (!ok()) return;
  error_ = {code, where_ + ": " + (path.empty() ? "" : path + ": ") + text, "see docs/formats/problem.md"};
}

bool JsonReader::object(const json& value, const std::string& path, std::initializer_list<const char*> known) {
  if (!value.is_object()) {
    fail(path, "expected an object, found " + kind(value));
    return false;
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string names;
    for (const char* name : known) names += std::string(names.empty() ? "" : ", ") + name;
    fail(path, "unknown key " + quote(key.substr(0, 80)) + ", expected one of " + names);
    return false;
  }
  return ok();
}

const json* JsonReader::member(const json& object, const std::string& path, const char* key, bool required) {
  const auto it = object.find(key);
  if (it != object.end()) return &*it;
  if (required) fail(path, std::string("the key \"") + key + "\" is missing");
  return nullptr;
}

const json* JsonReader::array(const json& object, const std::string& path, const char* key, size_t limit, bool required) {
  const json* value = member(object, path, key, required);
  if (!value) return nullptr;
  const std::string here = path.empty() ? key : path + "." + key;
  if (!value->is_array()) {
    fail(here, "expected an array, found " + kind(*value));
    return nullptr;
  }
  if (value->size() > limit) {
    fail(here, std::to_string(value->size()) + " entries, at most " + std::to_string(limit) + " are read", Exit::kUnsafe);
    return nullptr;
  }
  return value;
}

int64_t JsonReader::integer(const json& value, const std::string& path, int64_t least, int64_t most) {
  const bool large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value.is_number_integer() || large || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    fail(path, "expected " + range(least, most) + ", found " + kind(value));
    return least;
  }
  return value.get<int64_t>();
}

int64_t JsonReader::integer_at(const json& object, const std::string& path, const char* key, int64_t least, int64_t most,
                               const int64_t* fallback) {
  const json* value = member(object, path, key, fallback == nullptr);
  if (!value) return fallback ? *fallback : least;
  return integer(*value, path.empty() ? key : path + "." + key, least, most);
}

double JsonReader::number_at(const json& object, const std::string& path, const char* key, double least, double most) {
  const json* value = member(object, path, key, true);
  if (!value) return least;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    fail(path.empty() ? key : path + "." + key,
         "expected a number from " + decimal(least) + " to " + decimal(most) + ", found " + kind(*value));
    return least;
  }
  return number;
}

bool JsonReader::flag_at(const json& object, const std::string& path, const char* key, bool fallback) {
  const json* value = member(object, path, key, false);
  if (!value) return fallback;
  if (!value->is_boolean()) {
    fail(path + "." + key, "expected true or false, found " + kind(*value));
    return fallback;
  }
  return value->get<bool>();
}

std::string JsonReader::text_at(const json& object, const std::string& path, const char* key, bool required) {
  const json* value = member(object, path, key, required);
  if (!value) return {};
  const std::string here = path.empty() ? key : path + "." + key;
  if (!value->is_string()) {
    fail(here, "expected a string, found " + kind(*value));
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > kMaxNameBytes) {
    fail(here, "a string of " + std::to_string(text.size()) + " bytes, at most " + std::to_string(kMaxNameBytes) + " are read",
         Exit::kUnsafe);
    return {};
  }
  return text;
}

std::vector<int32_t> JsonReader::indices_at(const json& object, const std::string& path, const char* key, size_t count,
                                            bool required) {
  std::vector<int32_t> list;
  const json* value = array(object, path, key, kMaxStorages, required);
  if (!value) return list;
  list.reserve(value->size());
  for (size_t i = 0; i < value->size() && ok(); ++i) {
    const std::string here = path + "." + key + "[" + std::to_string(i) + "]";
    if (count == 0) {
      fail(here, "names a storage of a problem without storages");
      break;
    }
    list.push_back(static_cast<int32_t>(integer((*value)[i], here, 0, static_cast<int64_t>(count) - 1)));
  }
  return list;
}

std::string quote(const std::string& text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

std::string decimal(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

}  // namespace memscale::planner

// See json.h.
#include "compiler/planner/json.h"

#include <array>
#include <utility>

#include "compiler/planner/json_reader.h"

namespace memscale::planner {
namespace {

using nlohmann::json;

constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr double kMaxTimeUs = 1e12;
constexpr const char* kProblemFormat = "memscale.problem/1";
constexpr const char* kPlanFormat = "memscale.plan/1";
constexpr std::array<const char*, 8> kRoles = {"parameter", "buffer",     "input",    "constant",
                                               "tangent",   "activation", "gradient", "output"};

bool check_format(JsonReader& reader, const json& root, const char* expected) {
  const std::string found = reader.text_at(root, "", "format", true);
  if (reader.ok() && found != expected)
    reader.fail("format", std::string("expected \"") + expected + "\", found " + quote(found));
  return reader.ok();
}

std::string element(const char* list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

Storage read_storage(JsonReader& reader, const json& value, const std::string& path) {
  Storage storage;
  if (!reader.object(value, path, {"name", "bytes", "role", "resident", "keep"})) return storage;
  storage.name = reader.text_at(value, path, "name", true);
  storage.bytes = reader.integer_at(value, path, "bytes", 0, kMaxBytes, nullptr);
  storage.resident = reader.flag_at(value, path, "resident", false);
  storage.keep = reader.flag_at(value, path, "keep", false);
  const std::string role = reader.text_at(value, path, "role", true);
  for (size_t r = 0; r < kRoles.size(); ++r)
    if (role == kRoles[r]) {
      storage.role = static_cast<Role>(r);
      return storage;
    }
  std::string names;
  for (const char* name : kRoles) names += std::string(names.empty() ? "" : ", ") + name;
  reader.fail(path + ".role", "expected one of " + names + ", found " + quote(role.substr(0, 80)));
  return storage;
}

Op read_op(JsonReader& reader, const json& value, const std::string& path, size_t storages) {
  Op op;
  if (!reader.object(value, path,
                     {"name", "time_us", "workspace_bytes", "inputs", "outputs", "mutates", "inplace", "rng", "recomputable",
                      "backward", "block"}))
    return op;
  const int64_t none = 0, no_block = -1;
  op.name = reader.text_at(value, path, "name", true);
  op.time_us = reader.number_at(value, path, "time_us", 0, kMaxTimeUs);
  op.workspace_bytes = reader.integer_at(value, path, "workspace_bytes", 0, kMaxBytes, &none);
  op.inputs = reader.indices_at(value, path, "inputs", storages, true);
  op.outputs = reader.indices_at(value, path, "outputs", storages, true);
  op.mutates = reader.indices_at(value, path, "mutates", storages, false);
  op.rng = reader.flag_at(value, path, "rng", false);
  op.recomputable = reader.flag_at(value, path, "recomputable", true);
  op.backward = reader.flag_at(value, path, "backward", false);
  op.block = static_cast<int32_t>(reader.integer_at(value, path, "block", -1, INT32_MAX, &no_block));
  const json* pairs = reader.array(value, path, "inplace", 4096, false);
  for (size_t i = 0; pairs && i < pairs->size() && reader.ok(); ++i) {
    const std::string here = path + "." + element("inplace", i);
    const json& pair = (*pairs)[i];
    if (!pair.is_array() || pair.size() != 2) {
      reader.fail(here, "expected [input, output]");
      break;
    }
    const auto last = static_cast<int64_t>(storages) - 1;
    op.inplace.push_back({static_cast<int32_t>(reader.integer(pair[0], here + "[0]", 0, last)),
                          static_cast<int32_t>(reader.integer(pair[1], here + "[1]", 0, last))});
  }
  return op;
}

void append_list(std::string& out, const char* key, const std::vector<int32_t>& list) {
  out += std::string(",\"") + key + "\":[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? "," : "") + std::to_string(list[i]);
  out += "]";
}

}  // namespace

const char* role_name(Role role) { return kRoles[static_cast<size_t>(role)]; }

Expected<Problem> read_problem(std::string_view text, const std::string& where) {
  auto root = parse_json(text, where);
  if (!root) return root.error();
  JsonReader reader(where);
  Problem problem;
  if (!reader.object(*root, "", {"format", "name", "border", "static_bytes", "storages", "ops", "eager_extra_bytes"}) ||
      !check_format(reader, *root, kProblemFormat))
    return reader.error();
  const int64_t none = 0;
  problem.name = reader.text_at(*root, "", "name", false);
  problem.static_bytes = reader.integer_at(*root, "", "static_bytes", 0, kMaxBytes, &none);
  problem.border = static_cast<int32_t>(reader.integer_at(*root, "", "border", 0, INT32_MAX, nullptr));
  const json* storages = reader.array(*root, "", "storages", kMaxStorages, true);
  for (size_t i = 0; storages && i < storages->size() && reader.ok(); ++i)
    problem.storages.push_back(read_storage(reader, (*storages)[i], element("storages", i)));
  const json* ops = reader.array(*root, "", "ops", kMaxOps, true);
  for (size_t i = 0; ops && i < ops->size() && reader.ok(); ++i)
    problem.ops.push_back(read_op(reader, (*ops)[i], element("ops", i), problem.storages.size()));
  const json* extra = reader.array(*root, "", "eager_extra_bytes", kMaxOps, false);
  for (size_t i = 0; extra && i < extra->size() && reader.ok(); ++i)
    problem.eager_extra_bytes.push_back(reader.integer((*extra)[i], element("eager_extra_bytes", i), 0, kMaxBytes));
  if (!reader.ok()) return reader.error();
  const auto faults = problem.check();
  if (faults.empty()) return problem;
  std::string message = where + ": not a well-formed problem";
  for (const auto& fault : faults) message += "\n  " + fault;
  return Error{Exit::kUnsupported, message, "see docs/formats/problem.md"};
}

std::string write_problem(const Problem& problem) {
  std::string out = std::string("{\"format\":\"") + kProblemFormat + "\",\"name\":" + quote(problem.name) +
                    ",\"border\":" + std::to_string(problem.border) +
                    ",\"static_bytes\":" + std::to_string(problem.static_bytes) + ",\n\"storages\":[";
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    const Storage& s = problem.storages[i];
    out += std::string(i ? ",\n" : "\n") + "{\"name\":" + quote(s.name) + ",\"bytes\":" + std::to_string(s.bytes) +
           ",\"role\":\"" + role_name(s.role) + "\"" + (s.resident ? ",\"resident\":true" : "") +
           (s.keep ? ",\"keep\":true" : "") + "}";
  }
  out += "],\n\"ops\":[";
  for (size_t i = 0; i < problem.ops.size(); ++i) {
    const Op& op = problem.ops[i];
    out += std::string(i ? ",\n" : "\n") + "{\"name\":" + quote(op.name) + ",\"time_us\":" + decimal(op.time_us);
    if (op.workspace_bytes) out += ",\"workspace_bytes\":" + std::to_string(op.workspace_bytes);
    append_list(out, "inputs", op.inputs);
    append_list(out, "outputs", op.outputs);
    if (!op.mutates.empty()) append_list(out, "mutates", op.mutates);
    if (!op.inplace.empty()) {
      out += ",\"inplace\":[";
      for (size_t k = 0; k < op.inplace.size(); ++k)
        out += std::string(k ? "," : "") + "[" + std::to_string(op.inplace[k].input) + "," +
               std::to_string(op.inplace[k].output) + "]";
      out += "]";
    }
    if (op.rng) out += ",\"rng\":true";
    if (!op.recomputable) out += ",\"recomputable\":false";
    if (op.backward) out += ",\"backward\":true";
    if (op.block >= 0) out += ",\"block\":" + std::to_string(op.block);
    out += "}";
  }
  out += "]";
  if (!problem.eager_extra_bytes.empty()) {
    out += ",\n\"eager_extra_bytes\":[";
    for (size_t i = 0; i < problem.eager_extra_bytes.size(); ++i)
      out += (i ? "," : "") + std::to_string(problem.eager_extra_bytes[i]);
    out += "]";
  }
  return out + "}\n";
}

Expected<Plan> read_plan(std::string_view text, const std::string& where) {
  auto root = parse_json(text, where);
  if (!root) return root.error();
  JsonReader reader(where);
  Plan plan;
  if (!reader.object(*root, "",
                     {"format", "policy", "peak_bytes", "peak_run", "time_us", "base_time_us", "lower_bound_bytes", "runs"}) ||
      !check_format(reader, *root, kPlanFormat))
    return reader.error();
  plan.policy = reader.text_at(*root, "", "policy", true);
  plan.peak_bytes = reader.integer_at(*root, "", "peak_bytes", 0, INT64_MAX, nullptr);
  plan.peak_run = static_cast<int32_t>(reader.integer_at(*root, "", "peak_run", -1, INT32_MAX, nullptr));
  plan.time_us = reader.number_at(*root, "", "time_us", 0, 1e18);
  plan.base_time_us = reader.number_at(*root, "", "base_time_us", 0, 1e18);
  plan.lower_bound_bytes = reader.integer_at(*root, "", "lower_bound_bytes", 0, INT64_MAX, nullptr);
  const json* runs = reader.array(*root, "", "runs", 16 * kMaxOps, true);
  for (size_t i = 0; runs && i < runs->size() && reader.ok(); ++i) {
    const json& run = (*runs)[i];
    const std::string here = element("runs", i);
    // A bare number is an op that runs out of place.
    if (!run.is_array()) {
      plan.runs.push_back({static_cast<int32_t>(reader.integer(run, here, 0, INT32_MAX)), -1});
    } else if (run.size() != 2) {
      reader.fail(here, "expected op or [op, in-place candidate]");
    } else {
      plan.runs.push_back({static_cast<int32_t>(reader.integer(run[0], here + "[0]", 0, INT32_MAX)),
                           static_cast<int32_t>(reader.integer(run[1], here + "[1]", 0, INT32_MAX))});
    }
  }
  if (!reader.ok()) return reader.error();
  return plan;
}

std::string write_plan(const Plan& plan) {
  std::string out = std::string("{\"format\":\"") + kPlanFormat + "\",\"policy\":" + quote(plan.policy) +
                    ",\"peak_bytes\":" + std::to_string(plan.peak_bytes) + ",\"peak_run\":" + std::to_string(plan.peak_run) +
                    ",\"time_us\":" + decimal(plan.time_us) + ",\"base_time_us\":" + decimal(plan.base_time_us) +
                    ",\"lower_bound_bytes\":" + std::to_string(plan.lower_bound_bytes) + ",\n\"runs\":[";
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const std::string op = std::to_string(plan.runs[i].op);
    out += i ? "," : "";
    out += plan.runs[i].inplace < 0 ? op : "[" + op + "," + std::to_string(plan.runs[i].inplace) + "]";
  }
  return out + "]}\n";
}

}  // namespace memscale::planner

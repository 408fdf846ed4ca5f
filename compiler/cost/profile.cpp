// See profile.h.
#include "compiler/cost/profile.h"

#include <algorithm>

#include "compiler/cost/shapes.h"
#include "compiler/cost/yaml.h"

namespace memscale::cost {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;

void read_rates(YamlMap& map, const std::string& where, Profile& profile) {
  const YAML::Node rates = map.node("tflops");
  if (!map.ok()) return;
  if (!rates.IsMap()) return map.fail(rates, "tflops: expected a mapping from dtype to 10^12 FLOP/s");
  for (const auto& item : rates) {
    const std::string dtype = item.first.IsScalar() ? item.first.Scalar() : "";
    if (item_bytes(dtype) == 0) {
      const std::string near = nearest(dtype, dtypes());
      return map.fail(item.first,
                      "tflops: unknown dtype '" + dtype + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    if (profile.tflops.count(dtype)) return map.fail(item.first, "tflops: '" + dtype + "' appears twice");
    profile.tflops[dtype] = map.number(item.second, "tflops." + dtype, 1e-6, 1e6);
  }
  if (map.ok() && !profile.tflops.count("float32"))
    map.fail(rates, "tflops: 'float32' is missing; it stands for dtypes without an entry");
}

}  // namespace

double Profile::flops_per_s(const std::string& dtype) const {
  auto it = tflops.find(dtype);
  if (it == tflops.end()) it = tflops.find("float32");
  return it == tflops.end() ? 1e12 : it->second * 1e12;
}

int64_t Profile::round_bytes(int64_t bytes) const {
  const int64_t step = std::max<int64_t>(allocator_rounding_bytes, 1);
  return (bytes + step - 1) / step * step;
}

Expected<Profile> parse_profile(std::string_view text, const std::string& where) {
  auto root = parse_yaml(text, where);
  if (!root) return root.error();
  YamlMap map(*root, where, "");
  map.require_keys(
      {"format", "name", "device", "tflops", "memory_gb_per_s", "launch_us", "allocator_rounding_bytes",
       "storage_alignment_bytes", "device_memory_bytes", "reserve_bytes", "threads", "to_device_gb_per_s", "from_device_gb_per_s",
       "duplex_gb_per_s", "copy_slowdown", "pin_s_per_gib", "disk_read_gb_per_s", "disk_write_gb_per_s"},
      {"compute_capability"});
  const std::string format = map.text("format");
  if (map.ok() && format != "memscale.target/1")
    map.fail(map.node("format"), "format: expected 'memscale.target/1', found '" + format + "'");
  Profile profile;
  profile.name = map.text("name");
  profile.device = map.text("device");
  if (map.ok() && profile.device != "cpu" && profile.device != "cuda")
    map.fail(map.node("device"), "device: expected cpu or cuda, found '" + profile.device + "'");
  if (map.has("compute_capability"))
    profile.compute_capability = static_cast<int32_t>(map.integer("compute_capability", 50, 1000));
  read_rates(map, where, profile);
  profile.memory_gb_per_s = map.number("memory_gb_per_s", 1e-3, 1e6);
  profile.launch_us = map.number("launch_us", 0, 1e6);
  profile.allocator_rounding_bytes = map.integer("allocator_rounding_bytes", 1, int64_t{1} << 30);
  profile.storage_alignment_bytes = map.integer("storage_alignment_bytes", 1, int64_t{1} << 30);
  profile.device_memory_bytes = map.integer("device_memory_bytes", 1, kMaxBytes);
  profile.reserve_bytes = map.integer("reserve_bytes", 0, kMaxBytes);
  profile.threads = static_cast<int32_t>(map.integer("threads", 1, 4096));
  profile.to_device_gb_per_s = map.number("to_device_gb_per_s", 1e-3, 1e6);
  profile.from_device_gb_per_s = map.number("from_device_gb_per_s", 1e-3, 1e6);
  profile.duplex_gb_per_s = map.number("duplex_gb_per_s", 1e-3, 1e6);
  profile.copy_slowdown = map.number("copy_slowdown", 0, 1);
  profile.pin_s_per_gib = map.number("pin_s_per_gib", 0, 1e6);
  profile.disk_read_gb_per_s = map.number("disk_read_gb_per_s", 1e-3, 1e6);
  profile.disk_write_gb_per_s = map.number("disk_write_gb_per_s", 1e-3, 1e6);
  if (!map.ok()) return map.error();
  return profile;
}

Expected<Profile> load_profile(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_profile(*text, path);
}

}  // namespace memscale::cost

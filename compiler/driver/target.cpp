// Search for target profiles.
#include "compiler/driver/target.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "compiler/driver/suggest.h"

namespace memscale::driver {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> folders() {
  if (const char* chosen = std::getenv("MEMSCALE_TARGETS_DIR"); chosen != nullptr && *chosen != '\0') return {chosen};
  std::vector<fs::path> list;
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error) {
    list.push_back(self.parent_path().parent_path() / "share" / "memscale" / "targets");
  }
  list.push_back(fs::path(MEMSCALE_SOURCE_DIR) / "targets");
  return list;
}

bool is_profile(const fs::path& path) { return path.extension() == ".yaml" && path.stem().extension() != ".workspaces"; }

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const fs::path& folder : folders()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (is_profile(entry.path())) names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Expected<Target> load(const std::string& path) {
  Expected<cost::Profile> profile = cost::load_profile(path);
  if (!profile) return profile.error();
  if (profile->device == "cuda" && profile->compute_capability == 0) {
    return Error{Exit::kUsage, path + ": a profile for cuda needs the key compute_capability",
                 "90 for sm_90: which kernels PyTorch calls depends on it"};
  }
  return Target{std::move(*profile), path};
}

}  // namespace

Expected<Target> find_target(const std::string& name) {
  std::error_code error;
  if (name.ends_with(".yaml") || name.find('/') != std::string::npos) {
    if (fs::is_regular_file(name, error)) return load(name);
    return Error{Exit::kUsage, "--target: there is no file '" + name + "'",
                 "a profile's name works too: " + suggestion("", known_names())};
  }
  for (const fs::path& folder : folders()) {
    const fs::path path = folder / (name + ".yaml");
    if (is_profile(path) && fs::is_regular_file(path, error)) return load(path.string());
  }
  const std::vector<std::string> names = known_names();
  if (names.empty()) {
    return Error{Exit::kUsage, "--target: no target profiles were found",
                 "name the folder that holds them in MEMSCALE_TARGETS_DIR"};
  }
  return Error{Exit::kUsage, "--target: unknown target '" + name + "'", suggestion(name, names) + "; or the path of a YAML file"};
}

}  // namespace memscale::driver

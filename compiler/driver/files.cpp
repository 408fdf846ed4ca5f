// Checks and atomic writes.
#include "compiler/driver/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace memscale::driver {
namespace fs = std::filesystem;

namespace {

/// A device, a pipe: written in place, for a rename would replace it.
bool special(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_regular_file(path, error);
}

}  // namespace

std::string temporary_name(const std::string& path) { return path + "." + std::to_string(::getpid()) + ".tmp"; }

Expected<Success> check_writable(const std::string& option, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Error{Exit::kUsage, option + ": '" + path + "' cannot be written: " + why,
                 "name a file in a folder that exists and that you may write to"};
  };
  std::error_code error;
  if (fs::is_directory(path, error)) return refuse("it is a folder");
  if (special(path)) {
    if (option == "--output") return refuse("it is no regular file");
    return Success{};
  }
  const fs::path parent = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error)) return refuse("there is no folder '" + parent.string() + "'");
  // Permissions, read-only mounts and full inode tables all show only by trying.
  const std::string probe = temporary_name(path);
  errno = 0;
  const bool opened = std::ofstream(probe, std::ios::binary | std::ios::trunc).is_open();
  const int failed = errno;
  if (!opened) return refuse(failed != 0 ? std::strerror(failed) : "a file cannot be made there");
  fs::remove(probe, error);
  return Success{};
}

Expected<Success> write_file(const std::string& path, const std::string& text) {
  const bool in_place = special(path);
  const std::string temporary = in_place ? path : temporary_name(path);
  std::error_code error;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) {
      if (!in_place) fs::remove(temporary, error);
      return Error{Exit::kUsage, "'" + path + "' cannot be written: the folder is gone, or the disk is full", ""};
    }
  }
  if (in_place) return Success{};
  fs::rename(temporary, path, error);
  if (!error) return Success{};
  const std::string why = error.message();
  fs::remove(temporary, error);
  return Error{Exit::kUsage, "'" + path + "' cannot be written: " + why, ""};
}

}  // namespace memscale::driver

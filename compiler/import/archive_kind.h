// Tells what a file is by what it holds. Needs the zip reader, not torch; destroys nothing.
#pragma once

#include <optional>
#include <string>

#include "compiler/import/zip_reader.h"
#include "compiler/support/error.h"

namespace memscale::import {

enum class ArchiveKind { kTorchScript, kTorchExport };

struct Archive {
  ArchiveKind kind;
  std::string root;  // the folder that holds every entry, with its slash: "model/"
  ZipReader zip;
};

/// Errors: kUsage (no such file, a folder), kUnsafe (broken), kUnsupported (anything else, told apart and with its remedy).
Expected<Archive> open_archive(const std::string& path);

}  // namespace memscale::import

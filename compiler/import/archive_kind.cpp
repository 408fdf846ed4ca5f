// Archive kinds are told apart by the zip magic and by the records inside; file names play no part.
// Needs the zip reader. Destroys nothing.
#include "compiler/import/archive_kind.h"

#include <utility>

namespace memscale::import {
namespace {

constexpr const char* kExportHelp =
    "write a training graph instead: torch.export.save(torch.export.export(model, args), 'model.pt2'), or "
    "torch.jit.save(torch.jit.trace(model, args), 'model.pt')";

bool starts_with(std::string_view bytes, std::string_view prefix) { return bytes.substr(0, prefix.size()) == prefix; }

/// What a file that is no zip archive is.
Error not_a_zip(const std::string& path, std::string_view bytes) {
  const std::string who = "'" + path + "' ";
  if (bytes.empty())
    return {Exit::kUnsafe, who + "is empty: expected a TorchScript or torch.export archive", "write or copy the file again"};
  if (starts_with(bytes, "PK")) {
    return {Exit::kUnsafe, who + "begins as a zip archive but has no directory at its end: it is truncated",
            "write or copy the file again"};
  }
  if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    return {Exit::kUnsupported,
            who + "is a bare pickle (torch.save of an old format): it holds no graph, and pickles are not executed", kExportHelp};
  }
  if (starts_with(bytes, std::string_view("\x7f"
                                          "ELF",
                                          4))) {
    return {Exit::kUnsupported, who + "is a compiled library: expected a TorchScript or torch.export archive", kExportHelp};
  }
  if (starts_with(bytes, "GGUF"))
    return {Exit::kUnsupported, who + "is a GGUF file: it holds weights, no training graph", kExportHelp};
  if (starts_with(bytes, "\x89HDF")) return {Exit::kUnsupported, who + "is an HDF5 file: it holds no PyTorch graph", kExportHelp};
  if (bytes.size() > 9 && bytes[8] == '{' && starts_with(bytes.substr(8), "{\"")) {
    return {Exit::kUnsupported, who + "looks like a safetensors file: it holds weights, no training graph", kExportHelp};
  }
  return {Exit::kUnsupported, who + "is no zip archive: expected a TorchScript or torch.export archive", kExportHelp};
}

/// The folder shared by all entries, with its slash; empty if there is none.
std::string common_root(const ZipReader& zip) {
  std::string root;
  for (const ZipEntry& e : zip.entries()) {
    size_t slash = e.name.find('/');
    if (slash == std::string::npos) return "";
    std::string folder = e.name.substr(0, slash + 1);
    if (root.empty()) root = folder;
    if (folder != root) return "";
  }
  return root;
}

bool any_under(const ZipReader& zip, const std::string& folder) {
  for (const ZipEntry& e : zip.entries()) {
    if (starts_with(e.name, folder)) return true;
  }
  return false;
}

Error in_file(Error error, const std::string& path) {
  error.message = "'" + path + "': " + error.message;
  return error;
}

}  // namespace

Expected<Archive> open_archive(const std::string& path) {
  Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file) return file.error();
  std::string_view bytes = (*file)->bytes();
  if (!starts_with(bytes, "PK\x03\x04") && !starts_with(bytes, "PK\x05\x06")) return not_a_zip(path, bytes);
  Expected<ZipReader> opened = ZipReader::open(*file);
  if (!opened) return in_file(opened.error(), path);
  ZipReader& zip = *opened;
  const std::string root = common_root(zip), who = "'" + path + "' ";
  auto has = [&](const char* name) { return zip.find(root + name) != nullptr; };
  auto unsupported = [&](const std::string& what, const std::string& help) {
    return Error{Exit::kUnsupported, who + what, help};
  };

  if (root.empty() && zip.find("serialized_exported_program.json") != nullptr) {
    return unsupported("is a torch.export archive of PyTorch 2.7 or older",
                       "save it again: torch.export.save(torch.export.load(path), new_path) with PyTorch 2.8 or newer");
  }
  if (root.empty()) return unsupported("is a zip archive, but none that PyTorch wrote: its entries share no folder", kExportHelp);
  if (has("extra/memscale/plan.bin")) {
    return unsupported("is already compiled by memscale",
                       "compile the original archive; `memscalec inspect` shows what this one holds");
  }
  if (has("archive_format")) {
    Expected<std::string> format = zip.read(*zip.find(root + "archive_format"), 64);
    if (!format) return in_file(format.error(), path);
    if (*format != "pt2") return unsupported("states the archive format '" + *format + "': expected 'pt2'", kExportHelp);
    if (any_under(zip, root + "models/")) return Archive{ArchiveKind::kTorchExport, root, std::move(zip)};
    if (any_under(zip, root + "data/aotinductor/")) {
      return unsupported("holds a compiled AOTInductor package, no training graph", kExportHelp);
    }
    return unsupported("is a pt2 archive without a models folder: it holds no exported program", kExportHelp);
  }
  if (has("constants.pkl") && has("data.pkl")) return Archive{ArchiveKind::kTorchScript, root, std::move(zip)};
  if (has("bytecode.pkl")) return unsupported("is a mobile bytecode archive, which holds no graph", kExportHelp);
  if (has("data.pkl")) {
    return unsupported(
        "is an eager checkpoint (torch.save of a state_dict or a module): it holds weights and pickled Python, no graph",
        kExportHelp);
  }
  return unsupported("is a zip archive without the records of a TorchScript or torch.export archive", kExportHelp);
}

}  // namespace memscale::import

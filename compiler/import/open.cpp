// open(): finds out what the file is, reads it on a thread with a deep stack, and lets no exception out.
//
// Needs LibTorch. Destroys nothing. LibTorch's readers recurse on what the file nests; the deep stack and the limits on nesting
// together make a nested file an error instead of a crash.
#include <pthread.h>

#include <new>
#include <optional>

#include "compiler/import/archive_kind.h"
#include "compiler/import/model_torch.h"
#include "compiler/import/pt2.h"
#include "compiler/import/torchscript.h"

namespace memscale::import {
namespace {

constexpr size_t kStackBytes = size_t{512} << 20;

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// LibTorch's message without its C++ stack, its first lines only.
std::string shorten(const std::string& message) {
  std::string out;
  size_t begin = 0;
  for (int line = 0; line < 6 && begin < message.size(); ++line) {
    size_t end = std::min(message.find('\n', begin), message.size());
    std::string_view text(message.data() + begin, end - begin);
    if (text.rfind("Exception raised from", 0) == 0) break;
    if (!out.empty()) out += "\n  ";
    out += text.substr(0, 500);
    begin = end + 1;
  }
  return out;
}

Error from_torch(const std::string& path, const std::string& message) {
  const std::string text = "'" + path + "': LibTorch cannot read the archive: " + shorten(message);
  if (contains(message, "Unknown type name") || contains(message, "Unknown builtin op") ||
      contains(message, "unknown builtin op") || contains(message, "torch.classes") ||
      contains(message, "Couldn't find an operator") || contains(message, "Could not find any similar ops")) {
    return {Exit::kUnsupported, text, "load the library that defines this op or class first, or export the model without it"};
  }
  if (contains(message, "Attempted to read a PyTorch file with version")) {
    return {Exit::kUnsupported, text,
            "save the model again with PyTorch 2.11, or compile it with a memscale built on a newer PyTorch"};
  }
  return {Exit::kUnsafe, text, "write or copy the archive again; if it comes from elsewhere, do not trust it"};
}

Expected<std::shared_ptr<Model>> open_here(const std::string& path, const OpenOptions& options) {
  try {
    Expected<Archive> archive = open_archive(path);
    if (!archive) return archive.error();
    return archive->kind == ArchiveKind::kTorchScript ? open_torchscript(*archive, path) : open_pt2(*archive, path, options);
  } catch (const c10::Error& e) {
    return from_torch(path, e.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return Error{Exit::kUnsafe, "'" + path + "': the archive asks for more memory than there is",
                 "free memory, or do not trust the file"};
  } catch (const std::exception& e) {
    return from_torch(path, e.what());
  } catch (...) {
    return Error{Exit::kInternal, "'" + path + "': an unknown exception was thrown while reading the archive", ""};
  }
}

struct Task {
  const std::string& path;
  const OpenOptions& options;
  std::optional<Expected<std::shared_ptr<Model>>> result;
};

void* run_task(void* argument) {
  auto* task = static_cast<Task*>(argument);
  task->result.emplace(open_here(task->path, task->options));
  return nullptr;
}

}  // namespace

Expected<std::shared_ptr<Model>> open(const std::string& path, const OpenOptions& options) {
  Task task{path, options, std::nullopt};
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return Error{Exit::kInternal, "a thread cannot be described", ""};
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int failed = pthread_create(&thread, &attributes, run_task, &task);
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    return Error{Exit::kInternal, "a thread with a stack of 512 MiB to read the archive on cannot be started",
                 "raise the limit on virtual memory (ulimit -v)"};
  }
  pthread_join(thread, nullptr);
  return std::move(*task.result);
}

const ModelInfo& info(const Model& model) { return model.info; }

const std::vector<std::string>& warnings(const Model& model) { return model.warnings; }

}  // namespace memscale::import

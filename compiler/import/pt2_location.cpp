// Parses "stack_trace" and "nn_module_stack" of exported nodes. Needs nothing but their text; destroys nothing.
#include "compiler/import/pt2_location.h"

#include <cstdlib>
#include <vector>

#include "compiler/import/location.h"

namespace memscale::import {
namespace {

struct Frame {
  std::string file, code;
  int64_t line = 0;
};

/// `File "a.py", line 3, in forward` followed by the code, frame after frame, outermost first.
std::vector<Frame> frames_of(const std::string& trace) {
  std::vector<Frame> frames;
  size_t begin = 0;
  while (begin < trace.size()) {
    size_t end = std::min(trace.find('\n', begin), trace.size());
    std::string line = trace.substr(begin, end - begin);
    begin = end + 1;
    size_t start = line.find_first_not_of(" \t");
    if (start == std::string::npos) continue;
    if (line.compare(start, 6, "File \"") == 0) {
      size_t quote = line.find("\", line ", start + 6);
      if (quote == std::string::npos) continue;
      Frame f;
      f.file = line.substr(start + 6, quote - start - 6);
      f.line = std::strtoll(line.c_str() + quote + 8, nullptr, 10);
      frames.push_back(std::move(f));
    } else if (!frames.empty() && frames.back().code.empty()) {
      frames.back().code = line.substr(start);
    }
  }
  return frames;
}

/// The path of the innermost module: entries "key,path,class" are separated by semicolons.
std::string innermost_module(const std::string& stack) {
  size_t begin = stack.rfind(';');
  std::string last = begin == std::string::npos ? stack : stack.substr(begin + 1);
  size_t first = last.find(','), second = last.rfind(',');
  if (first == std::string::npos || second <= first) return "";
  std::string path = last.substr(first + 1, second - first - 1);
  const std::string self = "L['self'].";
  if (path.rfind(self, 0) == 0) path = path.substr(self.size());
  return path == "L['self']" ? "" : path;
}

}  // namespace

std::string NodeLocation::shown() const {
  std::string out = file.empty() ? "" : file + ":" + std::to_string(line);
  if (!module_path.empty()) out += (out.empty() ? "module " : " (module ") + module_path + (file.empty() ? "" : ")");
  return out;
}

NodeLocation location_of(const Json& node) {
  NodeLocation location;
  const Json* metadata = find_member(node, "metadata");
  if (metadata == nullptr || !metadata->is_object()) return location;
  if (const Json* trace = find_member(*metadata, "stack_trace"); trace != nullptr && trace->is_string()) {
    std::vector<Frame> frames = frames_of(trace->get_ref<const std::string&>());
    const Frame* chosen = frames.empty() ? nullptr : &frames.back();
    for (const Frame& f : frames) {
      if (!outside_user_code(f.file)) chosen = &f;
    }
    if (chosen != nullptr) {
      location.file = chosen->file;
      location.line = chosen->line;
      location.code = chosen->code;
    }
  }
  if (const Json* stack = find_member(*metadata, "nn_module_stack"); stack != nullptr && stack->is_string()) {
    location.module_path = innermost_module(stack->get_ref<const std::string&>());
  }
  return location;
}

void LocationWriter::set(torch::jit::Node* node, const NodeLocation& location) {
  if (!location.file.empty() && location.line > 0) {
    auto key = std::make_pair(location.file, location.line);
    auto it = ranges_.find(key);
    if (it == ranges_.end()) {
      std::string code = location.code.empty() ? "<code>" : location.code;
      size_t size = code.size();
      auto source = std::make_shared<torch::jit::Source>(std::move(code), location.file, static_cast<size_t>(location.line));
      it = ranges_.emplace(key, torch::jit::SourceRange(std::move(source), 0, size)).first;
    }
    node->setSourceRange(it->second);
  }
  if (location.module_path.empty()) return;
  auto [scope, fresh] = scopes_.try_emplace(location.module_path);
  if (fresh) scope->second = root_->push(c10::Symbol::scope(location.module_path));
  node->setScope(scope->second);
}

}  // namespace memscale::import

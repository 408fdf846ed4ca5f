// Frames of traced code: lines of the form `file.py(12): function`. Needs LibTorch's source ranges; destroys nothing.
#include "compiler/import/location.h"

#include <cstdlib>
#include <optional>

namespace memscale::import {

bool outside_user_code(const std::string& file) {
  if (file.empty() || file[0] == '<') return true;
  return file.find("/site-packages/torch/") != std::string::npos || file.find("/dist-packages/torch/") != std::string::npos;
}

UserLocation user_location(const torch::jit::SourceRange& range) {
  if (!range.source()) return {};
  torch::jit::SourceRange origin = range;
  if (std::optional<torch::jit::SourceRange> written = range.source()->findSourceRangeThatGenerated(range)) origin = *written;
  if (!origin.source()) return {};
  UserLocation innermost;
  const std::string text = origin.text().str();
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    size_t close = line.rfind("): "), open = close == std::string::npos ? close : line.rfind('(', close);
    if (open == std::string::npos || open == 0 || open + 1 >= close || line.find_first_not_of("0123456789", open + 1) != close)
      continue;
    UserLocation frame{line.substr(0, open), std::strtoll(line.c_str() + open + 1, nullptr, 10)};
    const bool python =
        frame.file.size() > 3 && (frame.file.compare(frame.file.size() - 3, 3, ".py") == 0 || frame.file[0] == '<');
    if (!python) continue;
    if (!outside_user_code(frame.file)) return frame;
    if (innermost.file.empty()) innermost = frame;
  }
  if (!innermost.file.empty()) return innermost;
  if (auto position = origin.file_line_col(); position && !std::get<0>(*position).empty()) {
    return {std::get<0>(*position), static_cast<int64_t>(std::get<1>(*position))};
  }
  return {};
}

}  // namespace memscale::import

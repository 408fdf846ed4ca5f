// Where in the user's source a node of an imported module comes from, for every kind of archive.
// Needs nodes as import or LibTorch left them; destroys nothing.
#pragma once

#include <torch/csrc/jit/frontend/source_range.h>

#include <string>

namespace memscale::import {

struct UserLocation {
  std::string file;  // empty if unknown
  int64_t line = 0;
};

/// Code of PyTorch itself, or code that was generated.
bool outside_user_code(const std::string& file);

/// torch.export and scripted archives: the range's own file and line. Traced archives hold the Python stack as the range's text,
/// innermost frame first: the first frame outside PyTorch, else the innermost.
UserLocation user_location(const torch::jit::SourceRange& range);

}  // namespace memscale::import

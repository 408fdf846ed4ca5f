// An opened training graph: a TorchScript archive or a torch.export archive. No torch type in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::import {

/// What is known of one forward input before shapes are given.
struct InputInfo {
  std::string name;
  bool shape_known = false;  // torch.export archives with static shapes
  std::string dtype;         // as capture::Value::dtype; empty if unknown
  std::vector<int64_t> sizes;
};

struct ModelInfo {
  std::string format;  // "torchscript" or "torch.export"
  std::vector<InputInfo> inputs;
  size_t parameter_count = 0;  // tensors, tied ones once
  int64_t parameter_bytes = 0;
  int64_t buffer_bytes = 0;
  bool has_weights = true;  // false: a structure-only archive
};

struct Model;  // compiler/import/model_torch.h

struct OpenOptions {
  bool read_weights =
      true;  // false: weight bytes are not read (planning alone); torch.export archives only, TorchScript always reads
};

/// Opens an archive by what it holds, not by its name. Errors: kUsage (no such file), kUnsafe (hostile or broken archive),
/// kUnsupported (an archive of a kind or version that is not read).
Expected<std::shared_ptr<Model>> open(const std::string& path, const OpenOptions& options = {});

const ModelInfo& info(const Model& model);

/// What the archive lost or what was assumed: for the user.
const std::vector<std::string>& warnings(const Model& model);

}  // namespace memscale::import

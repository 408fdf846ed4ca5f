// Opens a torch.export archive (docs/formats/pt2.md). Needs a checked zip archive; may throw what LibTorch throws.
#pragma once

#include <memory>

#include "compiler/import/archive_kind.h"
#include "compiler/import/model_torch.h"

namespace memscale::import {

Expected<std::shared_ptr<Model>> open_pt2(const Archive& archive, const std::string& path, const OpenOptions& options);

}  // namespace memscale::import

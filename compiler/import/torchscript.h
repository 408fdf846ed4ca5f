// Opens a TorchScript archive. Needs a checked zip archive; throws what LibTorch throws (open.cpp catches).
#pragma once

#include <memory>

#include "compiler/import/archive_kind.h"
#include "compiler/import/model_torch.h"

namespace memscale::import {

Expected<std::shared_ptr<Model>> open_torchscript(const Archive& archive, const std::string& path);

}  // namespace memscale::import

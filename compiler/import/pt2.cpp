// torch.export archives. Needs a checked zip archive.
#include "compiler/import/pt2.h"

namespace memscale::import {

Expected<std::shared_ptr<Model>> open_pt2(const Archive&, const std::string& path, const OpenOptions&) {
  return Error{Exit::kUnsupported, "'" + path + "': torch.export archives are not read yet", "save the model with torch.jit.save"};
}

}  // namespace memscale::import

// Finds target profiles: by name in the folders where they are installed, or by path. Needs and destroys nothing.
#pragma once

#include <string>

#include "compiler/cost/profile.h"
#include "compiler/support/error.h"

namespace memscale::driver {

struct Target {
  cost::Profile profile;
  std::string path;  // of the profile; workspaces stand beside it
};

/// `name`: "cpu", or a path that ends in .yaml. Looked at: MEMSCALE_TARGETS_DIR, ../share/memscale/targets beside the program's
/// folder, the source tree that it was built from. Errors: kUsage, with the known names.
Expected<Target> find_target(const std::string& name);

}  // namespace memscale::driver

// Writes model.ms.pt: the rewritten TorchScript archive with the plan inside.
#pragma once

#include <functional>
#include <string>

#include "compiler/capture/graph.h"
#include "compiler/import/model.h"
#include "compiler/support/error.h"

namespace memscale::fb {
struct PlanT;
}

namespace memscale::exporter {

/// Fills in the state records of `plan` and writes the archive to a temporary file beside `path`, renamed once it is whole.
/// Errors: kUsage (the folder cannot be written), kInternal (the written archive does not read back as planned).
/// `check` is called with the temporary file's name; its error keeps the file from its place.
Expected<Success> write_archive(const import::Model& model, fb::PlanT& plan, const std::string& path,
                                const std::function<Expected<Success>(const std::string&)>& check = {});

}  // namespace memscale::exporter

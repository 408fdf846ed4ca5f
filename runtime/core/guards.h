// What a plan takes for granted of the process: torch build, device, numeric modes, enabled attention backends.
// Needs torch alone, so that capture and runtime share one spelling. docs/formats/plan.md lists the names.
#pragma once

#include <map>
#include <string>

namespace memscale::runtime {

/// The present value of every guard that matters for `target` ("cpu", "cuda"), by name.
std::map<std::string, std::string> capture_guards(const std::string& target);

/// The present value of one guard; false if the name is unknown.
bool read_guard(const std::string& name, const std::string& target, std::string* value);

}  // namespace memscale::runtime

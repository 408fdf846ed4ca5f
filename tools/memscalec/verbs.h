// The verbs of memscalec. Each takes its own arguments (the verb itself left out) and returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace memscale::cli {

using Arguments = std::vector<std::string>;

int run_compile(const Arguments& arguments);
int run_verify(const Arguments& arguments);
int run_inspect(const Arguments& arguments);

}  // namespace memscale::cli

// Problem and Plan as JSON: "memscale.problem/1" and "memscale.plan/1" (docs/formats/problem.md).
//
// Readers take hostile input: limits on bytes, depth and counts, no unknown keys, no silent defaults for what matters; an error
// names the path ("ops[12].inputs[3]"). A problem that is read has passed Problem::check(). Writers are deterministic: same
// value, same bytes.
#pragma once

#include <string>
#include <string_view>

#include "compiler/planner/plan.h"
#include "compiler/planner/problem.h"
#include "compiler/support/error.h"

namespace memscale::planner {

/// `where` begins every error: the file's name.
Expected<Problem> read_problem(std::string_view text, const std::string& where);
std::string write_problem(const Problem& problem);

/// Reads the plan alone; verify() tells whether it fits a problem.
Expected<Plan> read_plan(std::string_view text, const std::string& where);
std::string write_plan(const Plan& plan);

const char* role_name(Role role);

}  // namespace memscale::planner

// Time over base time of our planner and of every baseline, per share of the save-all peak.
//
//   planner_baselines [--csv] [--factor=2] [--only=ours,dtr-eq] [--shares=0.5,0.3] [NETWORK | layers=N | PROBLEM.json]...
//
// Without names: the eight generated networks and a transformer of 48 layers. A failure prints why: OOM, slow, work (limits of an
// online baseline), over (no setting within the budget). The last column is the planning time over all shares, in seconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/planner/baselines/compare.h"
#include "compiler/planner/baselines/segments.h"
#include "compiler/planner/generate.h"
#include "compiler/planner/generate_network.h"
#include "compiler/planner/json.h"
#include "compiler/planner/relaxation.h"
#include "compiler/planner/solve.h"

namespace {

using namespace memscale::planner;

struct Arguments {
  CompareOptions options;
  bool csv = false;
  std::vector<std::string> only;  // policies, or "ours"; empty: all
  std::vector<double> shares;
  std::vector<std::string> problems;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::stringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

const char* reason(BaselineEnd end) {
  switch (end) {
    case BaselineEnd::kFits:
      return "";
    case BaselineEnd::kOverBudget:
      return "over";
    case BaselineEnd::kOutOfMemory:
      return "OOM";
    case BaselineEnd::kThrashed:
      return "slow";
    case BaselineEnd::kTooMuchWork:
      break;
  }
  return "work";
}

struct Cell {
  double factor = 0;  // 0: failed
  const char* reason = "";
  double seconds = 0;
};

void print(const Problem& p, const std::string& policy, const std::vector<Cell>& cells, const Arguments& how) {
  const bool csv = how.csv;
  double seconds = 0;
  if (!csv) std::printf("  %-16s", policy.c_str());
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell& c = cells[i];
    seconds += c.seconds;
    if (csv)
      std::printf("%s,%s,%.1f,%s,%.4f,%.4f\n", p.name.c_str(), policy.c_str(), how.shares[i], c.factor > 0 ? "fits" : c.reason,
                  c.factor, c.seconds);
    else if (c.factor > 0)
      std::printf(" %7.3f", c.factor);
    else
      std::printf(" %7s", c.reason);
  }
  if (!csv) std::printf("  %7.3f\n", seconds);
  std::fflush(stdout);
}

void table(const Problem& p, const Arguments& how) {
  const Tables tables(p);
  const Plan eager = save_all(tables);
  const auto peak = static_cast<double>(eager.peak_bytes);
  if (!how.csv)
    std::printf("%s: %zu ops, save-all peaks at %.3f GB, the largest working set is %.3f of it\n", p.name.c_str(), p.ops.size(),
                peak / 1e9, static_cast<double>(tables.order_floor().bytes) / peak);
  auto row = [&](const std::string& policy, auto plan) {
    if (!how.only.empty() && std::find(how.only.begin(), how.only.end(), policy) == how.only.end()) return;
    std::vector<Cell> cells;
    for (const double share : how.shares) cells.push_back(plan(static_cast<int64_t>(share * peak)));
    print(p, policy, cells, how);
  };
  row("ours", [&](int64_t budget) {
    Options o;
    o.budget_bytes = budget;
    const auto begin = std::chrono::steady_clock::now();
    const SolveResult r = solve(p, o);
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return Cell{r.feasible ? r.plan.time_us / eager.time_us : 0, "over", s};
  });
  row("lower bound", [&](int64_t budget) {
    const auto begin = std::chrono::steady_clock::now();
    const double bound = relax(tables, budget, 1.3 * eager.time_us, 300).bound_us;
    return Cell{bound / eager.time_us, "", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  });
  for (const std::string& policy : baseline_policies())
    row(policy, [&](int64_t budget) {
      const BaselineResult r = run_baseline(tables, policy, budget, how.options);
      return Cell{r.end == BaselineEnd::kFits ? r.plan.time_us / eager.time_us : 0, reason(r.end), r.planning_s};
    });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments how;
  auto value = [](const std::string& word) { return word.substr(word.find('=') + 1); };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--csv")
      how.csv = true;
    else if (word.starts_with("--factor="))
      how.options.time_factor = std::atof(value(word).c_str());
    else if (word.starts_with("--only="))
      how.only = split(value(word));
    else if (word.starts_with("--shares="))
      for (const std::string& share : split(value(word))) how.shares.push_back(std::atof(share.c_str()));
    else
      how.problems.push_back(word);
  }
  if (how.shares.empty()) how.shares = {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};
  if (how.problems.empty()) {
    how.problems.assign(kNetworks.begin(), kNetworks.end());
    how.problems.push_back("layers=48");
  }
  if (how.csv) std::printf("problem,policy,share,end,factor,planning_s\n");
  for (const std::string& name : how.problems) {
    if (std::find(kNetworks.begin(), kNetworks.end(), name) != kNetworks.end()) {
      table(generate_network(name), how);
    } else if (name.starts_with("layers=")) {
      table(generate_transformer(std::atoi(value(name).c_str()), 1 << 20), how);
    } else {
      std::ifstream file(name, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      auto problem = read_problem(text, name);
      if (!problem) {
        std::fprintf(stderr, "%s\n", problem.error().message.c_str());
        return 1;
      }
      problem->name = std::filesystem::path(name).stem().string();
      table(*problem, how);
    }
  }
  return 0;
}

// JSON: what is written reads back equal; hostile text is refused with its place.
#include "compiler/planner/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/planner/generate.h"
#include "compiler/planner/json_reader.h"
#include "compiler/planner/solve.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

const char* kSmall = R"({"format":"memscale.problem/1","name":"n","border":1,"static_bytes":3,
"storages":[{"name":"x","bytes":4,"role":"input","resident":true},{"name":"y","bytes":4,"role":"output","keep":true}],
"ops":[{"name":"f","time_us":1.5,"inputs":[0],"outputs":[1]}]})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& text, const std::string& part) {
  const auto read = read_problem(text, "p.json");
  ASSERT_FALSE(read) << "expected: " << part;
  EXPECT_EQ(read.error().message.rfind("p.json", 0), 0u) << read.error().message;
  EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
}

TEST(Json, ReadsASmallProblem) {
  const auto read = read_problem(kSmall, "p.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->storages[0].role, Role::kInput);
  EXPECT_TRUE(read->storages[1].keep);
  EXPECT_EQ(read->ops[0].time_us, 1.5);
  EXPECT_EQ(read->static_bytes, 3);
}

TEST(Json, ProblemRoundTrip) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.block_length = 4;
    Problem p = generate(options);
    p.ops[0].time_us = 0.1 + 1e-17 * static_cast<double>(seed);
    p.name = "quote \" backslash \\ newline \n and \xc3\xa9";
    if (seed % 2) p.eager_extra_bytes.assign(p.ops.size(), static_cast<int64_t>(seed));
    const std::string text = write_problem(p);
    const auto read = read_problem(text, "p.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(write_problem(*read), text);
    EXPECT_EQ(read->name, p.name);
    EXPECT_EQ(read->ops[0].time_us, p.ops[0].time_us);
    ASSERT_EQ(read->ops.size(), p.ops.size());
    for (size_t i = 0; i < p.ops.size(); ++i) {
      EXPECT_EQ(read->ops[i].inputs, p.ops[i].inputs);
      EXPECT_EQ(read->ops[i].mutates, p.ops[i].mutates);
      EXPECT_EQ(read->ops[i].inplace.size(), p.ops[i].inplace.size());
      EXPECT_EQ(read->ops[i].recomputable, p.ops[i].recomputable);
      EXPECT_EQ(read->ops[i].block, p.ops[i].block);
    }
  }
}

TEST(Json, PlanRoundTrip) {
  GenerateOptions generated;
  const Problem p = generate(generated);
  Options options;
  options.budget_bytes = find_lowest(p).peak_bytes;
  const Plan plan = solve(p, options).plan;
  const auto read = read_plan(write_plan(plan), "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->runs, plan.runs);
  EXPECT_EQ(read->policy, plan.policy);
  EXPECT_TRUE(verify(p, *read).empty());
}

TEST(Json, FaultsAreLocated) {
  const std::string good = kSmall;
  expect_refused("", "not valid JSON");
  expect_refused("{\n\"format\": }", "p.json:2:11: not valid JSON");
  expect_refused("[]", "expected an object, found array");
  expect_refused(replaced(good, "problem/1", "problem/2"),
                 "format: expected \"memscale.problem/1\", found \"memscale.problem/2\"");
  expect_refused(replaced(good, "\"border\":1,", ""), "the key \"border\" is missing");
  expect_refused(replaced(good, "\"border\":1", "\"boarder\":1"),
                 "unknown key \"boarder\", expected one of format, name, border");
  expect_refused(replaced(good, "\"bytes\":4", "\"bytes\":-4"), "storages[0].bytes: expected an integer from 0 to");
  expect_refused(replaced(good, "\"bytes\":4", "\"bytes\":4.5"), "storages[0].bytes: expected an integer");
  expect_refused(replaced(good, "\"bytes\":4", "\"bytes\":18446744073709551615"), "storages[0].bytes");
  expect_refused(replaced(good, "\"role\":\"input\"", "\"role\":\"guest\""),
                 "storages[0].role: expected one of parameter, buffer");
  expect_refused(replaced(good, "\"resident\":true", "\"resident\":1"), "storages[0].resident: expected true or false");
  expect_refused(replaced(good, "\"inputs\":[0]", "\"inputs\":[2]"),
                 "ops[0].inputs[0]: expected an integer from 0 to 1, found the integer 2");
  expect_refused(replaced(good, "\"inputs\":[0]", "\"inputs\":{}"), "ops[0].inputs: expected an array");
  expect_refused(replaced(good, "1.5", "1e999"), "not valid JSON");
  expect_refused(replaced(good, "1.5", "-1"), "ops[0].time_us: expected a number from 0");
  expect_refused(replaced(good, "\"outputs\":[1]", "\"outputs\":[1],\"inplace\":[[0]]"),
                 "ops[0].inplace[0]: expected [input, output]");
  expect_refused(replaced(good, "\"border\":1", "\"border\":0"), "not a well-formed problem");
  expect_refused(good + "{}", "not valid JSON");
}

TEST(Json, HostileShapesAreUnsafe) {
  const std::string deep = replaced(kSmall, "[0]", std::string(100000, '[') + std::string(100000, ']'));
  auto read = read_problem(deep, "p.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Exit::kUnsafe);
  EXPECT_NE(read.error().message.find("nested deeper than 6"), std::string::npos);
  read = read_problem(replaced(kSmall, "\"border\":1", "\"border\":1,\"border\":1"), "p.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Exit::kUnsafe);
  EXPECT_NE(read.error().message.find("appears twice"), std::string::npos);
  read = read_problem(replaced(kSmall, "\"n\"", "\"" + std::string(5000, 'a') + "\""), "p.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Exit::kUnsafe);
  read = read_problem(replaced(kSmall, "[1]", "[1],\"inplace\":[" + std::string(10000, '1') + "]"), "p.json");
  EXPECT_FALSE(read);
}

TEST(Json, EveryCutIsRefused) {
  const std::string good = kSmall;
  for (size_t i = 0; i < good.size() - 1; ++i) EXPECT_FALSE(read_problem(good.substr(0, i), "p.json")) << i;
}

TEST(Json, EveryFlippedByteIsRefusedOrWellFormed) {
  const std::string good = kSmall;
  for (size_t i = 0; i < good.size(); ++i)
    for (char c : {'\0', '9', '"', '{', ']', '\xff', '-'}) {
      std::string bad = good;
      bad[i] = c;
      const auto read = read_problem(bad, "p.json");
      if (read) EXPECT_TRUE(read->check().empty());
    }
}

TEST(Json, TheExamplesOfTheDocumentation) {
  std::ifstream file("docs/formats/problem.md");
  std::stringstream all;
  all << file.rdbuf();
  std::vector<std::string> blocks;
  for (size_t at = 0; (at = all.str().find("```json\n", at)) != std::string::npos;) {
    const size_t begin = at + 8, end = all.str().find("```", begin);
    blocks.push_back(all.str().substr(begin, end - begin));
    at = end;
  }
  ASSERT_EQ(blocks.size(), 2u);
  const auto problem = read_problem(blocks[0], "problem.md");
  ASSERT_TRUE(problem) << problem.error().message;
  const auto plan = read_plan(blocks[1], "problem.md");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(verify(*problem, *plan), std::vector<std::string>{});
}

TEST(Json, PlanFaults) {
  Plan plan;
  plan.runs = {{0, -1}, {1, 2}};
  plan.policy = "x";
  const std::string good = write_plan(plan);
  EXPECT_TRUE(read_plan(good, "q"));
  for (const auto& [from, to, part] :
       std::vector<std::array<std::string, 3>>{{"[1,2]", "[1]", "runs[1]: expected op or [op, in-place candidate]"},
                                               {"[1,2]", "-1", "runs[1]: expected an integer from 0"},
                                               {"\"peak_run\":-1", "\"peak_run\":-2", "peak_run: expected an integer from -1"},
                                               {"plan/1", "plan/9", "format: expected"},
                                               {"\"policy\":\"x\",", "", "the key \"policy\" is missing"}}) {
    const auto read = read_plan(replaced(good, from, to), "q");
    ASSERT_FALSE(read) << part;
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace memscale::planner

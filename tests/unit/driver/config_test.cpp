// Configuration files: every setting, errors with line numbers, suggestions, the printed form reads back.
#include "compiler/driver/config.h"

#include <gtest/gtest.h>

namespace memscale::driver {
namespace {

Error refused(const std::string& text) {
  CompileOptions options;
  const Expected<Success> read = read_config_text(text, "c.yaml", options);
  EXPECT_FALSE(bool(read)) << text;
  return read ? Error{} : read.error();
}

TEST(Config, EverySetting) {
  CompileOptions options;
  const Expected<Success> read = read_config_text(
      "input: m.pt\noutput: m.ms.pt\nbudget: 0.6x\ntarget: h200\nshape:\n  - ids=8x128:int64\n  - labels=8:int64\n"
      "optimizer: sgd:momentum\npolicy: greedy\nall-tangents: true\ndeterministic: true\nthreads: 3\nreplay-steps: "
      "2\nsearch-rounds: 25\ndry-run: "
      "true\nexplain: h.0\nreport: "
      "r.json\n"
      "emit: plan\nemit-to: p.json\nverbose: true\n",
      "c.yaml", options);
  ASSERT_TRUE(bool(read)) << read.error().message;
  EXPECT_EQ(options.input, "m.pt");
  EXPECT_EQ(options.output, "m.ms.pt");
  EXPECT_DOUBLE_EQ(options.budget.fraction, 0.6);
  EXPECT_EQ(options.target, "h200");
  ASSERT_EQ(options.shapes.size(), 2u);
  EXPECT_EQ(options.shapes[1].name, "labels");
  EXPECT_EQ(options.optimizer.kind, Optimizer::Kind::kSgdMomentum);
  EXPECT_EQ(options.policy, "greedy");
  EXPECT_TRUE(options.all_tangents);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.replay_steps, 2);
  EXPECT_EQ(options.search_rounds, 25);
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.explain, "h.0");
  EXPECT_EQ(options.report, "r.json");
  EXPECT_EQ(options.emit, Emit::kPlan);
  EXPECT_EQ(options.emit_to, "p.json");
  EXPECT_EQ(options.verbosity, 1);
}

TEST(Config, EverySettingHasAKeyThatIsTested) { EXPECT_EQ(settings().size(), 19u) << "extend EverySetting and this number"; }

TEST(Config, ShapesAsAMapAndAsText) {
  CompileOptions options;
  ASSERT_TRUE(bool(read_config_text("shape: {ids: 8x128:int64, x: 4x4}\n", "c", options)));
  ASSERT_EQ(options.shapes.size(), 2u);
  EXPECT_EQ(options.shapes[0].name, "ids");
  ASSERT_TRUE(bool(read_config_text("shape: x=2x2\n", "c", options)));  // replaces the list
  ASSERT_EQ(options.shapes.size(), 1u);
}

TEST(Config, EmptyFileChangesNothing) {
  CompileOptions options;
  EXPECT_TRUE(bool(read_config_text("", "c", options)));
  EXPECT_TRUE(bool(read_config_text("# only a comment\n", "c", options)));
  EXPECT_EQ(print_config(options), print_config(CompileOptions()));
}

TEST(Config, UnknownKeyNamesTheNearestAndTheLine) {
  const Error error = refused("target: cpu\n\nbudgte: 0.5x\n");
  EXPECT_EQ(error.code, Exit::kUsage);
  EXPECT_EQ(error.message, "c.yaml:3: unknown key 'budgte'");
  EXPECT_NE(error.help.find("'budget'"), std::string::npos);
}

TEST(Config, WrongValuesNameTheLine) {
  EXPECT_EQ(refused("\nbudget: 0.5\n").message.rfind("c.yaml:2: --budget", 0), 0u);
  EXPECT_EQ(refused("dry-run: yes\n").message, "c.yaml:1: dry-run: expected true or false, found 'yes'");
  EXPECT_EQ(refused("budget: [1GiB]\n").message, "c.yaml:1: budget: expected one value");
  EXPECT_EQ(refused("budget:\n").message, "c.yaml:1: budget: the value is missing");
  EXPECT_EQ(refused("budget: 1GiB\nbudget: 2GiB\n").message, "c.yaml:2: the key 'budget' stands twice");
  EXPECT_NE(refused("shape: [[x]]\n").message.find("c.yaml:1:"), std::string::npos);
  EXPECT_NE(refused("- a\n- b\n").message.find("expected a map"), std::string::npos);
  EXPECT_NE(refused("a: [\n").message.find("this is no YAML"), std::string::npos);
  EXPECT_NE(refused("verbose: true\nquiet: true\n").message.find("c.yaml:2"), std::string::npos);
}

TEST(Config, PrintedFormReadsBack) {
  CompileOptions options;
  ASSERT_TRUE(
      bool(read_config_text("input: 'a b: #.pt'\nbudget: min\nshape: [x=4x4:bf16:grad, 't=():int64']\nexplain: '*'\n"
                            "quiet: true\nsearch-rounds: 7\noptimizer: none\n",
                            "c", options)));
  const std::string printed = print_config(options);
  CompileOptions again;
  const Expected<Success> read = read_config_text(printed, "printed", again);
  ASSERT_TRUE(bool(read)) << read.error().message << "\n" << printed;
  EXPECT_EQ(print_config(again), printed);
  EXPECT_EQ(again.input, "a b: #.pt");
  EXPECT_EQ(again.explain, "");
  EXPECT_EQ(again.verbosity, -1);
}

TEST(Config, AFileThatIsNotThere) {
  CompileOptions options;
  const Expected<Success> read = read_config("/no/such/config.yaml", options);
  ASSERT_FALSE(bool(read));
  EXPECT_EQ(read.error().code, Exit::kUsage);
  EXPECT_NE(read.error().message.find("/no/such/config.yaml"), std::string::npos);
}

TEST(Options, WhatIsMissingIsNamed) {
  CompileOptions options;
  EXPECT_EQ(check_options(options).error().message, "no input given");
  options.input = "m.pt";
  EXPECT_EQ(check_options(options).error().message, "no output given");
  options.dry_run = true;
  EXPECT_TRUE(bool(check_options(options)));
  options.report = "r.html";
  EXPECT_EQ(check_options(options).error().code, Exit::kUsage);
  options.report = "r.txt";
  options.emit = Emit::kProblem;
  EXPECT_NE(check_options(options).error().message.find("nothing has been planned"), std::string::npos);
  options.report.clear();
  options.explain = "";
  EXPECT_NE(check_options(options).error().message.find("both write to standard output"), std::string::npos);
  options.emit_to = "x";
  EXPECT_TRUE(bool(check_options(options)));
  options.emit = Emit::kNothing;
  options.emit_to = "x";
  EXPECT_EQ(check_options(options).error().message, "--emit-to without --emit");
}

}  // namespace
}  // namespace memscale::driver

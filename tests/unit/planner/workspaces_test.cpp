// Expressions over sizes, and the files that hold them.
#include "compiler/cost/workspaces.h"

#include <gtest/gtest.h>

namespace memscale::cost {
namespace {

const OpDescription& call() {
  static const OpDescription op{"aten::f", "", {{"float32", {2, 3, 5}}, {"bfloat16", {7}}}, {{"int64", {4, 6}}}, {}, false};
  return op;
}

int64_t value(const std::string& text, int64_t threads = 8) {
  const auto expression = Expression::parse(text);
  EXPECT_TRUE(expression) << expression.error().message;
  const auto result = expression->evaluate(call(), threads);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : INT64_MIN;
}

void expect_parse_fault(const std::string& text, const std::string& part) {
  const auto expression = Expression::parse(text);
  ASSERT_FALSE(expression) << text;
  EXPECT_NE(expression.error().message.find(part), std::string::npos) << expression.error().message;
}

void expect_fault(const std::string& text, const std::string& part) {
  const auto expression = Expression::parse(text);
  ASSERT_TRUE(expression) << expression.error().message;
  const auto result = expression->evaluate(call(), 8);
  ASSERT_FALSE(result) << text;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

TEST(Expression, Arithmetic) {
  EXPECT_EQ(value("0"), 0);
  EXPECT_EQ(value("1 + 2 * 3 - 4"), 3);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("7 / 2 / 2"), 1);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("-3 + 5"), 2);
  EXPECT_EQ(value("--3"), 3);
  EXPECT_EQ(value("ceil_div(7, 2)"), 4);
  EXPECT_EQ(value("ceil_div(8, 2)"), 4);
  EXPECT_EQ(value("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(value("max(3, min(9, 5))"), 5);
  EXPECT_EQ(value(" threads*2 "), 16);
}

TEST(Expression, Sizes) {
  EXPECT_EQ(value("in0.numel"), 30);
  EXPECT_EQ(value("in0.bytes"), 120);
  EXPECT_EQ(value("in1.bytes"), 14);
  EXPECT_EQ(value("in1.itemsize"), 2);
  EXPECT_EQ(value("out0.bytes"), 192);
  EXPECT_EQ(value("in0.rank"), 3);
  EXPECT_EQ(value("in0.size[0]"), 2);
  EXPECT_EQ(value("in0.size[-1]"), 5);
  EXPECT_EQ(value("2 * threads * in0.size[-1] * in0.itemsize"), 2 * 8 * 5 * 4);
}

TEST(Expression, ParseFaultsGiveTheColumn) {
  expect_parse_fault("", "column 1");
  expect_parse_fault("1 +", "column 4");
  expect_parse_fault("1 2", "column 3 of '1 2': expected an operator or the end");
  expect_parse_fault("(1", "expected ')'");
  expect_parse_fault("max(1)", "expected ','");
  expect_parse_fault("in0", "expected '.'");
  expect_parse_fault("in0.colour", "column 5 of 'in0.colour': expected bytes, numel");
  expect_parse_fault("input.bytes", "expected a number, threads");
  expect_parse_fault("in9999.bytes", "expected a number, threads");
  expect_parse_fault("in0.size[x]", "expected an integer");
  expect_parse_fault("99999999999999999999", "expected an integer below 2^63");
  expect_parse_fault("system(1)", "column 1");
  expect_parse_fault(std::string(200, '('), "nested too deeply");
  expect_parse_fault(std::string(200, '-') + "1", "nested too deeply");
  expect_parse_fault(std::string(2000, '1'), "at most 1000 characters");
}

TEST(Expression, EvaluationFaults) {
  expect_fault("in2.bytes", "in2 does not exist, the call has 2");
  expect_fault("out1.bytes", "out1 does not exist, the call has 1");
  expect_fault("in0.size[3]", "in0 has rank 3, size[3] is asked for");
  expect_fault("in0.size[-4]", "size[-4]");
  expect_fault("1 / (threads - 8)", "division by zero");
  expect_fault("ceil_div(1, 0)", "division by zero");
  expect_fault("9223372036854775807 + 1", "exceeds 64 bits");
  expect_fault("9223372036854775807 * 2", "exceeds 64 bits");
  expect_fault("(-9223372036854775807 - 1) / -1", "exceeds 64 bits");
}

const char* kFile =
    "format: memscale.workspaces/1\nversions: {torch: \"2.11\"}\nops:\n  aten::f: in0.bytes + 1\n  aten::f.out: 7\n  aten::g: "
    "0\n  aten::h: in5.bytes\n  aten::n: 0 - 5\n";

TEST(Workspaces, Entries) {
  const auto w = Workspaces::parse(kFile, "w.yaml");
  ASSERT_TRUE(w) << w.error().message;
  Profile profile;
  OpDescription op = call();
  EXPECT_EQ(*w->bytes(op, profile), 121);
  profile.allocator_rounding_bytes = 512;
  EXPECT_EQ(*w->bytes(op, profile), 512);
  op.overload = "out";
  profile.allocator_rounding_bytes = 1;
  EXPECT_EQ(*w->bytes(op, profile), 7);
  op.overload = "other";
  EXPECT_EQ(*w->bytes(op, profile), 121);
  EXPECT_TRUE(w->has_workspace_entry("aten::g"));
  EXPECT_TRUE(w->has_workspace_entry("aten::f", "Tensor"));
  EXPECT_FALSE(w->has_workspace_entry("aten::unknown"));
  op.name = "aten::unknown";
  EXPECT_EQ(*w->bytes(op, profile), 0);
  EXPECT_EQ(w->versions().at("torch"), "2.11");
}

TEST(Workspaces, FailuresNameTheEntry) {
  const auto w = Workspaces::parse(kFile, "w.yaml");
  ASSERT_TRUE(w);
  OpDescription op = call();
  op.name = "aten::h";
  EXPECT_NE(w->bytes(op, Profile{}).error().message.find("w.yaml:7:12: "), std::string::npos)
      << w->bytes(op, Profile{}).error().message;
  op.name = "aten::n";
  EXPECT_NE(w->bytes(op, Profile{}).error().message.find("comes out as -5 bytes"), std::string::npos);
}

TEST(Workspaces, StrictLoading) {
  const auto fault = [](const std::string& text) {
    const auto w = Workspaces::parse(text, "w.yaml");
    return w ? std::string("none") : w.error().message;
  };
  const std::string head = "format: memscale.workspaces/1\nversions: {torch: \"2.11\"}\n";
  EXPECT_EQ(fault(head + "ops: {}\n"), "none");
  EXPECT_NE(fault(head).find("the key 'ops' is missing"), std::string::npos);
  EXPECT_NE(fault(head + "ops: {}\nopps: {}\n").find("unknown key 'opps'; did you mean 'ops'?"), std::string::npos);
  EXPECT_NE(fault(head + "ops:\n  aten::f: 1 +\n").find("w.yaml:4:12: aten::f: column 4"), std::string::npos)
      << fault(head + "ops:\n  aten::f: 1 +\n");
  EXPECT_NE(fault(head + "ops:\n  f: 1\n").find("expected 'namespace::op: expression'"), std::string::npos);
  EXPECT_NE(fault(head + "ops:\n  aten::f: 1\n  aten::f: 2\n").find("appears twice"), std::string::npos);
  EXPECT_NE(fault(head + "ops: [1]\n").find("expected a mapping from op to expression"), std::string::npos);
}

TEST(Workspaces, ShippedOnesLoad) {
  for (const char* path : {"targets/cpu.workspaces.yaml", "targets/h200.workspaces.yaml"}) {
    const auto w = Workspaces::load(path);
    EXPECT_TRUE(w) << w.error().message;
  }
}

}  // namespace
}  // namespace memscale::cost

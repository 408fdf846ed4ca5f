// Target profiles: the shipped ones load, every kind of fault is located and helps.
#include "compiler/cost/profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace memscale::cost {
namespace {

std::string shipped(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_fault(const std::string& text, const std::string& part) {
  const auto profile = parse_profile(text, "t.yaml");
  ASSERT_FALSE(profile) << "expected: " << part;
  EXPECT_NE(profile.error().message.find(part), std::string::npos) << profile.error().message;
}

TEST(Profile, ShippedOnesLoad) {
  const auto cpu = load_profile("targets/cpu.yaml");
  ASSERT_TRUE(cpu) << cpu.error().message;
  EXPECT_EQ(cpu->device, "cpu");
  EXPECT_EQ(cpu->round_bytes(1001), 1001);  // c10 counts what is asked for
  const auto h200 = load_profile("targets/h200.yaml");
  ASSERT_TRUE(h200) << h200.error().message;
  EXPECT_EQ(h200->device, "cuda");
  EXPECT_EQ(h200->round_bytes(1), 512);
  EXPECT_EQ(h200->round_bytes(512), 512);
  EXPECT_EQ(h200->round_bytes(513), 1024);
  EXPECT_EQ(h200->round_bytes(0), 0);
  EXPECT_EQ(h200->flops_per_s("bfloat16"), 790e12);
  EXPECT_EQ(h200->flops_per_s("int8"), h200->flops_per_s("float32"));
}

TEST(Profile, UnknownKeySuggestsTheNearest) {
  expect_fault(replaced(shipped("targets/cpu.yaml"), "launch_us", "lunch_us"),
               "unknown key 'lunch_us'; did you mean 'launch_us'?");
  expect_fault(shipped("targets/cpu.yaml") + "qqqqqqqqqqqq: 1\n", "unknown key 'qqqqqqqqqqqq'");
  expect_fault(replaced(shipped("targets/cpu.yaml"), "bfloat16", "bfloat17"),
               "unknown dtype 'bfloat17'; did you mean 'bfloat16'?");
}

TEST(Profile, FaultsCarryLineAndColumn) {
  const std::string cpu = shipped("targets/cpu.yaml");
  expect_fault(replaced(cpu, "device: cpu", "device: tpu"), "t.yaml:4:9: device: expected cpu or cuda, found 'tpu'");
  expect_fault(replaced(cpu, "name: cpu", "name: [1]"), "t.yaml:3:7: name: expected a text, found a list");
  expect_fault("a: [\n", "t.yaml:2:1: not valid YAML");
}

TEST(Profile, MissingKey) {
  expect_fault(replaced(shipped("targets/cpu.yaml"), "copy_slowdown: 0.05\n", ""), "the key 'copy_slowdown' is missing");
  expect_fault(replaced(shipped("targets/cpu.yaml"), "float32: 0.036", "float16: 0.036"), "'float32' is missing");
}

TEST(Profile, BadValues) {
  const std::string cpu = shipped("targets/cpu.yaml");
  expect_fault(replaced(cpu, "copy_slowdown: 0.05", "copy_slowdown: 2"),
               "copy_slowdown: expected a number from 0 to 1, found '2'");
  expect_fault(replaced(cpu, "copy_slowdown: 0.05", "copy_slowdown: .nan"), "copy_slowdown: expected a number");
  expect_fault(replaced(cpu, "threads: 2", "threads: 2.5"), "threads: expected an integer from 1 to 4096, found '2.5'");
  expect_fault(replaced(cpu, "threads: 2", "threads: two"), "threads: expected an integer");
  expect_fault(replaced(cpu, "threads: 2", "threads: 2\nthreads: 3"), "the key 'threads' appears twice");
  expect_fault(replaced(cpu, "target/1", "target/2"), "format: expected 'memscale.target/1', found 'memscale.target/2'");
  expect_fault("", "expected a mapping, found nothing");
  expect_fault("- 1\n", "expected a mapping, found a list");
}

TEST(Profile, FileThatIsNotThere) {
  const auto profile = load_profile("targets/none.yaml");
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().message.find("targets/none.yaml: cannot be opened"), std::string::npos);
}

TEST(Profile, TooLargeAFile) {
  const auto profile = parse_profile(std::string(3 << 20, '#'), "t.yaml");
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, Exit::kUnsafe);
}

}  // namespace
}  // namespace memscale::cost

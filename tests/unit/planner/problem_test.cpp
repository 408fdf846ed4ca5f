// Problem::check: a well-formed problem has no fault, each way to break one is named with its op or storage.
#include <gtest/gtest.h>

#include "compiler/planner/generate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

using testing::chain;

void expect_fault(const Problem& p, const std::string& part) {
  const auto faults = p.check();
  ASSERT_FALSE(faults.empty()) << "expected: " << part;
  EXPECT_NE(faults[0].find(part), std::string::npos) << faults[0];
}

TEST(Problem, WellFormedOnesPass) {
  EXPECT_TRUE(Problem{}.check().empty());
  EXPECT_TRUE(chain(5, 100).check().empty());
  for (uint64_t seed = 1; seed < 50; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    EXPECT_EQ(generate(options).check(), std::vector<std::string>{}) << seed;
  }
  EXPECT_TRUE(generate_transformer(3, 1 << 16).check().empty());
}

TEST(Problem, ReadBeforeProduction) {
  Problem p = chain(3, 100);
  p.ops[0].inputs = {3};
  expect_fault(p, "op 0 (op0) reads storage 3 (s3), which is not resident and which no earlier op produces");
}

TEST(Problem, IndexOutOfRange) {
  Problem p = chain(3, 100);
  p.ops[1].inputs = {77};
  expect_fault(p, "op 1 (op1): inputs[0] names storage 77 of 8");
  p.ops[1].inputs = {-1};
  expect_fault(p, "names storage -1");
}

TEST(Problem, UnsortedList) {
  Problem p = chain(3, 100);
  p.ops[4].inputs = {2, 2};
  expect_fault(p, "must be sorted and unique");
}

TEST(Problem, TwoProducers) {
  Problem p = chain(3, 100);
  p.ops[2].outputs = {1};
  expect_fault(p, "produces storage 1 (s1), which op 0 produces already");
}

TEST(Problem, ProducesResident) {
  Problem p = chain(3, 100);
  p.ops[2].outputs = {0};
  expect_fault(p, "produces storage 0 (s0), which is resident");
}

TEST(Problem, KeptButNeverProduced) {
  Problem p = chain(3, 100);
  p.storages.push_back({"orphan", 1, Role::kGradient, false, true});
  expect_fault(p, "storage 8 (orphan) is to be kept, and no op produces it");
}

TEST(Problem, BadNumbers) {
  Problem p = chain(3, 100);
  p.storages[1].bytes = -1;
  expect_fault(p, "storage 1 (s1): expected 0 to 2^50 bytes, found -1");
  p = chain(3, 100);
  p.ops[1].time_us = std::numeric_limits<double>::quiet_NaN();
  expect_fault(p, "op 1 (op1): expected 0 to 1e12 us");
  p = chain(3, 100);
  p.ops[1].workspace_bytes = -5;
  expect_fault(p, "expected a workspace");
  p = chain(3, 100);
  p.static_bytes = -5;
  expect_fault(p, "static_bytes");
  p = chain(3, 100);
  p.eager_extra_bytes = {1, 2};
  expect_fault(p, "eager_extra_bytes: expected none or 7 entries, found 2");
}

TEST(Problem, Border) {
  Problem p = chain(3, 100);
  p.border = 5;
  expect_fault(p, "op 3 (op3) is a backward op before the border 5");
  p.border = 2;
  expect_fault(p, "op 2 (op2) stands at the border and is not a backward op");
  p.border = 8;
  expect_fault(p, "border: expected 0 to 7, found 8");
}

TEST(Problem, InPlace) {
  Problem p = chain(3, 100);
  p.ops[1].inplace = {{0, 2}};
  expect_fault(p, "storage 0 is not among its inputs");
  p.ops[1].inplace = {{1, 3}};
  expect_fault(p, "storage 3 is not among its outputs");
  p.ops[1].inplace = {{1, 2}};
  EXPECT_TRUE(p.check().empty());
  p.storages[2].bytes = 99;
  expect_fault(p, "the sizes differ, 100 and 99 bytes");
}

TEST(Problem, ManyFaultsAreCut) {
  Problem p = chain(200, 100);
  for (auto& s : p.storages) s.bytes = -1;
  const auto faults = p.check();
  EXPECT_LE(faults.size(), 60u);
  EXPECT_GE(faults.size(), 50u);
}

}  // namespace
}  // namespace memscale::planner

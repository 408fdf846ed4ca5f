// Sizes and budgets: what is read, what is refused, and that printing reads back.
#include "compiler/driver/bytes.h"

#include <gtest/gtest.h>

#include "compiler/driver/budget.h"

namespace memscale::driver {
namespace {

int64_t bytes(const std::string& text) {
  Expected<int64_t> parsed = parse_bytes(text);
  EXPECT_TRUE(bool(parsed)) << text;
  return parsed ? *parsed : -1;
}

TEST(Bytes, BinaryAndDecimalUnits) {
  EXPECT_EQ(bytes("600MiB"), 600LL * 1024 * 1024);
  EXPECT_EQ(bytes("12GiB"), 12LL << 30);
  EXPECT_EQ(bytes("1.5GiB"), 3LL << 29);
  EXPECT_EQ(bytes("2 TiB"), 2LL << 40);
  EXPECT_EQ(bytes("12GB"), 12000000000LL);
  EXPECT_EQ(bytes("4kB"), 4000);
  EXPECT_EQ(bytes("17B"), 17);
  EXPECT_EQ(bytes("0.3B"), 0);  // rounded down
}

TEST(Bytes, RefusesWhatHasNoUnitOrIsNoNumber) {
  for (const char* text : {"", "12", "GiB", "12GB!", "-1GiB", "1e3GiB", "0x10GiB", "1..5GiB", "12gib", "12 ", "nanB"}) {
    Expected<int64_t> parsed = parse_bytes(text);
    ASSERT_FALSE(bool(parsed)) << text;
    EXPECT_EQ(parsed.error().code, Exit::kUsage);
    EXPECT_NE(parsed.error().message.find("'" + std::string(text) + "'"), std::string::npos) << parsed.error().message;
  }
}

TEST(Bytes, RefusesWhatCannotBeAddressed) {
  EXPECT_NE(parse_bytes("99999999999TiB").error().message.find("larger"), std::string::npos);
}

TEST(Bytes, PrintsGibibytes) {
  EXPECT_EQ(print_bytes(3LL << 29), "1.500 GiB");
  EXPECT_EQ(print_bytes(600LL << 20), "600.0 MiB");
  EXPECT_EQ(print_bytes(1536), "1.5 KiB");
  EXPECT_EQ(print_bytes(512), "512 B");
  EXPECT_EQ(print_bytes(-(1LL << 30)), "-1.000 GiB");
}

TEST(Bytes, ExactFormReadsBack) {
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{1} << 40, (int64_t{7} << 30) + 3}) {
    EXPECT_EQ(bytes(exact_bytes(value)), value) << exact_bytes(value);
  }
  EXPECT_EQ(exact_bytes(600LL << 20), "600MiB");
}

TEST(Budget, Kinds) {
  EXPECT_EQ(parse_budget("12GiB")->bytes, 12LL << 30);
  EXPECT_EQ(parse_budget("0.6x")->kind, Budget::Kind::kFraction);
  EXPECT_DOUBLE_EQ(parse_budget("0.6x")->fraction, 0.6);
  EXPECT_EQ(parse_budget("min")->kind, Budget::Kind::kMin);
  EXPECT_EQ(parse_budget("auto")->kind, Budget::Kind::kAuto);
  EXPECT_EQ(Budget().kind, Budget::Kind::kAuto);
}

TEST(Budget, Refused) {
  for (const char* text : {"0.5", "x", "-1GiB", "12GB!", "0x", "", "0GiB", "-0.5x", "1e-1x", "infx", "Min"}) {
    Expected<Budget> budget = parse_budget(text);
    ASSERT_FALSE(bool(budget)) << text;
    EXPECT_EQ(budget.error().code, Exit::kUsage);
    EXPECT_NE(budget.error().message.find("--budget"), std::string::npos);
  }
}

}  // namespace
}  // namespace memscale::driver

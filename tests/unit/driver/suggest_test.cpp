// The nearest known name, and that far names suggest nothing.
#include "compiler/driver/suggest.h"

#include <gtest/gtest.h>

namespace memscale::driver {
namespace {

TEST(Suggest, EditDistance) {
  EXPECT_EQ(edit_distance("budget", "budget"), 0u);
  EXPECT_EQ(edit_distance("budgte", "budget"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("budgt", "budget"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Suggest, Nearest) {
  const std::vector<std::string> known = {"budget", "target", "report"};
  EXPECT_EQ(nearest("budgte", known), "budget");
  EXPECT_EQ(nearest("taget", known), "target");
  EXPECT_EQ(nearest("zzz", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(suggestion("zzz", known), "known: budget, target, report");
}

}  // namespace
}  // namespace memscale::driver

// What reaches a terminal: names from archives cannot move its cursor.
#include "tools/memscalec/terminal.h"

#include <gtest/gtest.h>

namespace memscale::cli {
namespace {

TEST(Printable, TextStays) {
  EXPECT_EQ(printable("a b\n\tc"), "a b\n\tc");
  EXPECT_EQ(printable("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\x89"), "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\x89");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlsAndBrokenUtf8AreEscaped) {
  EXPECT_EQ(printable("\033[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\r\x7f"), "\\x0d\\x7f");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");           // cut off
  EXPECT_EQ(printable("\xc3("), "\\xc3(");         // no continuation
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // a C1 control
}

}  // namespace
}  // namespace memscale::cli

// --shape: forms, defaults, refusals, and that the printed form reads back.
#include "compiler/driver/shape.h"

#include <gtest/gtest.h>

namespace memscale::driver {
namespace {

TEST(Shape, NameSizesDtype) {
  const Expected<capture::InputSpec> spec = parse_shape("ids=8x128:int64");
  ASSERT_TRUE(bool(spec));
  EXPECT_EQ(spec->name, "ids");
  EXPECT_EQ(spec->sizes, (std::vector<int64_t>{8, 128}));
  EXPECT_EQ(spec->dtype, "i64");
  EXPECT_FALSE(spec->requires_grad);
}

TEST(Shape, DefaultsAndForms) {
  EXPECT_EQ(parse_shape("x=4")->dtype, "f32");
  EXPECT_EQ(parse_shape("0=4x4:bf16")->name, "0");
  EXPECT_EQ(parse_shape("4x4")->name, "");
  EXPECT_EQ(parse_shape("batch.1=4x4:half")->name, "batch.1");
  EXPECT_TRUE(parse_shape("t=():int64")->sizes.empty());
  EXPECT_EQ(parse_shape("t=0x3")->sizes, (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(parse_shape("x=4x4:grad")->requires_grad);
  EXPECT_TRUE(parse_shape("x=4x4:float64:grad")->requires_grad);
  EXPECT_EQ(parse_shape("x=4x4:float64:grad")->dtype, "f64");
}

TEST(Shape, Refused) {
  for (const char* text :
       {"x", "x=", "", "=4", "x=4xq:float32", "x=4:floaty", "x=-4:float32", "x=4x4:float32:2", "x=4x", "x=x4",
        "x=4:", "x=4:grad:float32", "x=4:int64:grad:grad", "x=(4)", "x=99999999999999999999", "x=4294967296x4294967296"}) {
    const Expected<capture::InputSpec> spec = parse_shape(text);
    ASSERT_FALSE(bool(spec)) << text;
    EXPECT_EQ(spec.error().code, Exit::kUsage);
    EXPECT_NE(spec.error().message.find("--shape"), std::string::npos);
  }
  EXPECT_NE(parse_shape("x=4:flaot32").error().message.find("'float32'"), std::string::npos);
}

TEST(Shape, PrintedFormReadsBack) {
  for (const char* text : {"ids=8x128:int64", "t=():bool", "8x8:float32", "x=4x4:bfloat16:grad", "z=0:complex64"}) {
    EXPECT_EQ(print_shape(*parse_shape(text)), text);
  }
}

}  // namespace
}  // namespace memscale::driver

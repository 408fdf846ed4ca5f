// Bytes of torch.optim's implementations: two parameters of 100 and 400 bytes, scalars of 64.
#include "compiler/driver/optimizer.h"

#include <gtest/gtest.h>

namespace memscale::driver {
namespace {

OptimizerBytes of(const char* text, const char* target) {
  const Expected<Optimizer> optimizer = parse_optimizer(text);
  EXPECT_TRUE(bool(optimizer)) << text;
  return optimizer_bytes(*optimizer, {{100}, {400}}, target, 64);
}

TEST(Optimizer, State) {
  EXPECT_EQ(of("adamw", "cpu").state, 2 * 500 + 2 * 64);  // two moments, a step counter each
  EXPECT_EQ(of("adamw", "cuda").state, 2 * 500);          // the counters stay on the host
  EXPECT_EQ(of("adamw:fused", "cuda").state, 2 * 500 + 2 * 64);
  EXPECT_EQ(of("sgd", "cpu").state, 0);
  EXPECT_EQ(of("sgd:momentum", "cuda").state, 500);
  EXPECT_EQ(of("none", "cuda").state, 0);
}

TEST(Optimizer, Temporaries) {
  EXPECT_EQ(of("adamw", "cpu").temporary, 2 * 400);  // one tensor at a time: root and quotient of the largest
  EXPECT_EQ(of("adamw", "cuda").temporary, 500);     // foreach: the roots of all
  EXPECT_EQ(of("adamw:none", "cuda").temporary, 800);
  EXPECT_EQ(of("adamw:fused", "cpu").temporary, 0);
  EXPECT_EQ(of("sgd:momentum:foreach", "cuda").temporary, 0);
}

TEST(Optimizer, UnknownNamesTheNearest) {
  const Expected<Optimizer> wrong = parse_optimizer("adamwww");
  ASSERT_FALSE(bool(wrong));
  EXPECT_EQ(wrong.error().code, Exit::kUsage);
  EXPECT_NE(wrong.error().message.find("'adamw'"), std::string::npos);
  for (const char* text : {"", "adam:w", "adamw:", "sgd:nesterov", "none:fused"})
    EXPECT_FALSE(bool(parse_optimizer(text))) << text;
}

}  // namespace
}  // namespace memscale::driver

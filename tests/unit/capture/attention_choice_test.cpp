// The choice of attention kernel against what torch itself chose on the device (tests/data/sdpa_choice_sm90.json).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/capture/lowering_rules.h"

namespace memscale::capture {
namespace {

TEST(AttentionChoice, AgreesWithTheRecordedDevice) {
  std::ifstream file("tests/data/sdpa_choice_sm90.json");
  ASSERT_TRUE(file) << "run from the source root";
  const auto oracle = nlohmann::json::parse(file);
  const auto options = at::TensorOptions().device(at::kMeta);
  size_t compared = 0;
  for (const auto& row : oracle["rows"]) {
    const std::string dtype = row[0];
    const at::ScalarType type = dtype == "float32" ? at::kFloat : dtype == "bfloat16" ? at::kBFloat16 : at::kHalf;
    const int64_t head = row[1], queries = row[2], keys = row[3], kv_heads = row[7];
    Attention attention;
    attention.query = at::empty({2, 4, queries, head}, options.dtype(type)).set_requires_grad(row[8].get<bool>());
    attention.key = at::empty({2, kv_heads, keys, head}, options.dtype(type)).set_requires_grad(row[8].get<bool>());
    attention.value = attention.key;
    if (row[4] == "bool") attention.mask = at::empty({queries, keys}, options.dtype(at::kBool));
    if (row[4] == "float") attention.mask = at::empty({2, 1, queries, keys}, options.dtype(type));
    if (row[4] == "bcast") attention.mask = at::empty({2, 1, 1, keys}, options.dtype(type));
    attention.dropout_p = row[5];
    attention.is_causal = row[6];
    attention.enable_gqa = kv_heads != 4;
    ASSERT_EQ(static_cast<int>(choose_attention_sm90(attention, false)), row[9].get<int>()) << row.dump();
    ++compared;
  }
  EXPECT_EQ(compared, 5184u);
}

TEST(AttentionChoice, CudnnIsNotDeterministic) {
  const at::Tensor q = at::empty({2, 4, 128, 64}, at::TensorOptions().device(at::kMeta).dtype(at::kBFloat16));
  const Attention attention{q, q, q, {}, 0.0, true, {}, false};
  EXPECT_EQ(choose_attention_sm90(attention, false), AttentionKernel::kCudnn);
  EXPECT_EQ(choose_attention_sm90(attention, true), AttentionKernel::kFlash);
}

}  // namespace
}  // namespace memscale::capture

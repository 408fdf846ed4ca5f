// Time of one op on a profile: launch + max(FLOPs / rate, bytes / bandwidth).
//
// FLOPs are counted for matrix products, convolutions, attention and recurrent layers; everything else is taken to be bound by
// the bytes it reads and writes. O(tensors).
#pragma once

#include <string>

#include "compiler/cost/profile.h"
#include "compiler/cost/shapes.h"

namespace memscale::cost {

struct OpCost {
  double flops = 0;
  double bytes = 0;  // read and written
  double time_us = 0;
  std::string kind;  // "view", "matmul", "convolution", "attention", "recurrent", "gather", "fill" or "bytes"
};

OpCost estimate(const Profile& profile, const OpDescription& op);

}  // namespace memscale::cost

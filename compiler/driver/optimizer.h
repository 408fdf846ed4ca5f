// What the optimizer holds and takes while it steps, as --optimizer names it. Needs and destroys nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::driver {

struct Optimizer {
  enum class Kind { kNone, kSgd, kSgdMomentum, kAdamW } kind = Kind::kAdamW;
  /// kDefault: what torch.optim chooses by itself, foreach on an accelerator and one tensor at a time on the CPU.
  enum class Form { kDefault, kFused, kForeach, kSingle } form = Form::kDefault;
  std::string text = "adamw";  // as given
};

/// "adamw", "adamw:fused", "adamw:foreach", "adamw:none", the same for "sgd" and "sgd:momentum", and "none". Errors: kUsage.
Expected<Optimizer> parse_optimizer(const std::string& text);

struct OptimizerBytes {
  int64_t state = 0;      // held all through training, once the first step is done
  int64_t temporary = 0;  // allocated in addition while the optimizer steps
};

/// One trained parameter: bytes of its values, rounded as the target's allocator does.
struct TrainedParameter {
  int64_t bytes = 0;
};

/// `scalar_bytes`: what a 4-byte allocation takes on the target; `target`: "cpu" or "cuda". torch.optim of torch 2.11 with its
/// default arguments (no amsgrad, no capturable, no weight decay of the kind that adds to the gradients).
OptimizerBytes optimizer_bytes(const Optimizer& optimizer, const std::vector<TrainedParameter>& parameters,
                               const std::string& target, int64_t scalar_bytes);

}  // namespace memscale::driver

// Parsing of --optimizer, and the bytes that torch.optim 2.11 allocates.
#include "compiler/driver/optimizer.h"

#include <algorithm>

#include "compiler/driver/suggest.h"

namespace memscale::driver {

Expected<Optimizer> parse_optimizer(const std::string& text) {
  static const std::vector<std::string> kKnown = {
      "adamw",        "adamw:fused",        "adamw:foreach",        "adamw:none",
      "sgd",          "sgd:fused",          "sgd:foreach",          "sgd:none",
      "sgd:momentum", "sgd:momentum:fused", "sgd:momentum:foreach", "sgd:momentum:none",
      "none"};
  if (std::find(kKnown.begin(), kKnown.end(), text) == kKnown.end()) {
    const std::string near = nearest(text, kKnown);
    return Error{Exit::kUsage,
                 "--optimizer: unknown optimizer '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
                 "adamw, sgd, sgd:momentum (each with :fused, :foreach or :none for torch.optim's implementation), or none"};
  }
  Optimizer optimizer;
  optimizer.text = text;
  if (text == "none") {
    optimizer.kind = Optimizer::Kind::kNone;
    return optimizer;
  }
  optimizer.kind = text.rfind("adamw", 0) == 0          ? Optimizer::Kind::kAdamW
                   : text.rfind("sgd:momentum", 0) == 0 ? Optimizer::Kind::kSgdMomentum
                                                        : Optimizer::Kind::kSgd;
  const auto ends_with = [&](const char* tail) { return text.ends_with(tail); };
  optimizer.form = ends_with(":fused")     ? Optimizer::Form::kFused
                   : ends_with(":foreach") ? Optimizer::Form::kForeach
                   : ends_with(":none")    ? Optimizer::Form::kSingle
                                           : Optimizer::Form::kDefault;
  return optimizer;
}

OptimizerBytes optimizer_bytes(const Optimizer& optimizer, const std::vector<TrainedParameter>& parameters,
                               const std::string& target, int64_t scalar_bytes) {
  using Form = Optimizer::Form;
  const Form form = optimizer.form != Form::kDefault ? optimizer.form : target == "cuda" ? Form::kForeach : Form::kSingle;
  int64_t all = 0, largest = 0;
  for (const TrainedParameter& p : parameters) {
    all += p.bytes;
    largest = std::max(largest, p.bytes);
  }
  OptimizerBytes bytes;
  switch (optimizer.kind) {
    case Optimizer::Kind::kNone:
    case Optimizer::Kind::kSgd:
      break;
    case Optimizer::Kind::kSgdMomentum:
      bytes.state = all;
      break;
    case Optimizer::Kind::kAdamW:
      bytes.state = 2 * all;
      // The step counter stays on the host unless the implementation is fused.
      if (target == "cpu" || form == Form::kFused) bytes.state += static_cast<int64_t>(parameters.size()) * scalar_bytes;
      // The square roots of the second moments: of all parameters at once, or of one, twice (root and quotient).
      if (form == Form::kForeach) bytes.temporary = all;
      if (form == Form::kSingle) bytes.temporary = 2 * largest;
      break;
  }
  return bytes;
}

}  // namespace memscale::driver

// What a plan takes for granted of the process: torch build, device, modes that change which kernels are called.
// Needs torch alone, so that capture and runtime share one spelling. docs/formats/plan.md lists the names.
#pragma once

#include <map>
#include <string>

namespace memscale::runtime {

/// The present value of every guard that matters for `target` ("cpu", "cuda"), by name.
std::map<std::string, std::string> capture_guards(const std::string& target);

/// The present value of one guard; false if the name is unknown.
bool read_guard(const std::string& name, const std::string& target, std::string* value);

/// Settings by which kernels choose how to compute, not what is called: a plan holds under any of them, as long as forward and
/// what backward recomputes of it run under the same.
struct NumericSettings {
  int matmul_precision = -1, fp16_reduction = 0, bf16_reduction = 0;
  bool tf32_cudnn = false, fp16_accumulation = false, deterministic = false, cudnn_deterministic = false, cudnn_benchmark = false;
  bool operator==(const NumericSettings&) const = default;
};
NumericSettings numeric_settings();

}  // namespace memscale::runtime

// The TorchScript source of a planned module's forward.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace memscale::exporter {

/// Why a forward cannot be written: its signature or structure has no TorchScript spelling here.
class WrapperError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct WrapperRequest {
  const c10::FunctionSchema* original = nullptr;  // forward's schema, self first
  bool flat = false;                              // forward takes the plan's inputs as they are, and returns its outputs
  std::string input_structure;                    // JSON as in docs/formats/plan.md; unused if `flat`
  std::string output_structure;
  size_t input_count = 0;
  size_t output_count = 0;
  std::vector<std::string> parameters;  // qualified names, in plan order
  std::vector<std::string> buffers;
  std::vector<std::pair<std::string, bool>> modes;  // module path → `training` at compile time; differing means fall back
};

struct WrapperSource {
  std::string text;
  std::map<std::string, c10::TupleTypePtr> named_tuples;  // identifiers in the text that build them
};

/// Throws WrapperError.
WrapperSource write_wrapper(const WrapperRequest& request);

}  // namespace memscale::exporter

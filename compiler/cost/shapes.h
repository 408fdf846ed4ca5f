// Tensors as the cost model sees them: a dtype by torch's name, sizes, and what follows from these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace memscale::cost {

/// Bytes of one element; 0 for a name that is no dtype.
int64_t item_bytes(const std::string& dtype);
std::vector<std::string> dtypes();

struct TensorShape {
  std::string dtype = "float32";
  std::vector<int64_t> sizes;

  int64_t numel() const;
  int64_t bytes() const { return numel() * item_bytes(dtype); }
};

/// One call. Inputs and outputs are the defined tensors among the schema's arguments and results, in its order.
struct OpDescription {
  std::string name;      // "aten::convolution"
  std::string overload;  // "out"; empty: the default one
  std::vector<TensorShape> inputs, outputs;
  std::map<std::string, std::vector<int64_t>> ints;  // arguments by name: is_causal, transposed, groups, output_mask
  bool view = false;                                 // gives a view of an input: no kernel runs
};

}  // namespace memscale::cost

// See roofline.h.
#include "compiler/cost/roofline.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace memscale::cost {
namespace {

struct Dtype {
  const char* name;
  int64_t bytes;
};
constexpr std::array<Dtype, 18> kDtypes = {{{"float64", 8},
                                            {"float32", 4},
                                            {"float16", 2},
                                            {"bfloat16", 2},
                                            {"float8_e4m3fn", 1},
                                            {"float8_e5m2", 1},
                                            {"complex32", 4},
                                            {"complex64", 8},
                                            {"complex128", 16},
                                            {"int64", 8},
                                            {"int32", 4},
                                            {"int16", 2},
                                            {"int8", 1},
                                            {"uint8", 1},
                                            {"uint16", 2},
                                            {"uint32", 4},
                                            {"uint64", 8},
                                            {"bool", 1}}};

double numel(const TensorShape& t) { return static_cast<double>(t.numel()); }

int64_t argument(const OpDescription& op, const char* name, size_t index, int64_t fallback) {
  const auto it = op.ints.find(name);
  return it != op.ints.end() && index < it->second.size() ? it->second[index] : fallback;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// [.., m, k] x [k, n]: every output element takes k multiply-adds.
double matmul_flops(const OpDescription& op, size_t left) {
  if (left >= op.inputs.size() || op.inputs[left].sizes.empty() || op.outputs.empty()) return 0;
  return 2 * numel(op.outputs[0]) * static_cast<double>(op.inputs[left].sizes.back());
}

double convolution_flops(const OpDescription& op, const TensorShape& small, const TensorShape& large, const TensorShape& weight) {
  if (weight.sizes.empty() || weight.sizes[0] == 0) return 0;
  // The weight is [out, in/groups, kernel] and meets every output element; transposed: [in, out/groups, kernel] and every input
  // one.
  const TensorShape& met = argument(op, "transposed", 0, 0) ? large : small;
  return 2 * numel(met) * numel(weight) / static_cast<double>(weight.sizes[0]);
}

double convolution_backward_flops(const OpDescription& op) {
  if (op.inputs.size() < 3) return 0;
  const double one = convolution_flops(op, op.inputs[0], op.inputs[1], op.inputs[2]);
  const bool masked = op.ints.count("output_mask") > 0;
  double products = 0;
  if (masked)
    products = static_cast<double>((argument(op, "output_mask", 0, 1) != 0) + (argument(op, "output_mask", 1, 1) != 0));
  else
    for (const TensorShape& out : op.outputs) products += out.sizes == op.inputs[1].sizes || out.sizes == op.inputs[2].sizes;
  return one * products;
}

/// q, k, v as [batch, heads, length, size]: two products, four beside a recomputed one in the backward pass.
double attention_flops(const OpDescription& op, bool backward) {
  const size_t first = backward ? 1 : 0;
  if (op.inputs.size() < first + 3) return 0;
  const TensorShape &q = op.inputs[first], &k = op.inputs[first + 1], &v = op.inputs[first + 2];
  if (q.sizes.size() < 2 || k.sizes.size() < 2 || v.sizes.empty()) return 0;
  const auto keys = static_cast<double>(k.sizes[k.sizes.size() - 2]);
  const double rows = q.sizes.back() > 0 ? numel(q) / static_cast<double>(q.sizes.back()) : 0;
  const double qk = 2 * rows * keys * static_cast<double>(q.sizes.back()),
               pv = 2 * rows * keys * static_cast<double>(v.sizes.back());
  const double all = backward ? 3 * qk + 2 * pv : qk + pv;
  return argument(op, "is_causal", 0, 0) ? all / 2 : all;
}

/// Every weight matrix meets every step of every sequence.
double recurrent_flops(const OpDescription& op, bool backward) {
  double weights = 0, steps = 0;
  for (const TensorShape& t : op.inputs) {
    if (t.sizes.size() == 2) weights += numel(t);
    if (t.sizes.size() == 3 && steps == 0) steps = static_cast<double>(t.sizes[0]) * static_cast<double>(t.sizes[1]);
  }
  return (backward ? 4 : 2) * weights * steps;
}

double all_bytes(const OpDescription& op) {
  double bytes = 0;
  for (const TensorShape& t : op.inputs) bytes += static_cast<double>(t.bytes());
  for (const TensorShape& t : op.outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

double output_bytes(const OpDescription& op) {
  double bytes = 0;
  for (const TensorShape& t : op.outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

constexpr std::array<std::string_view, 34> kViews = {
    "view",         "_unsafe_view",    "reshape_alias", "_reshape_alias",   "t",        "transpose", "permute",
    "expand",       "expand_as",       "slice",         "select",           "squeeze",  "unsqueeze", "alias",
    "detach",       "as_strided",      "split",         "split_with_sizes", "chunk",    "unbind",    "narrow",
    "diagonal",     "unfold",          "view_as",       "movedim",          "swapaxes", "real",      "imag",
    "view_as_real", "view_as_complex", "lift_fresh",    "flatten",          "numpy_T",  "mT"};

}  // namespace

int64_t item_bytes(const std::string& dtype) {
  for (const Dtype& d : kDtypes)
    if (dtype == d.name) return d.bytes;
  return 0;
}

std::vector<std::string> dtypes() {
  std::vector<std::string> names;
  for (const Dtype& d : kDtypes) names.push_back(d.name);
  return names;
}

int64_t TensorShape::numel() const {
  int64_t n = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(n, size, &n) || n < 0) return 0;
  return n;
}

OpCost estimate(const Profile& profile, const OpDescription& op) {
  OpCost cost;
  const std::string_view full = op.name;
  const std::string_view name = full.substr(full.rfind(':') == std::string_view::npos ? 0 : full.rfind(':') + 1);
  const bool backward = contains(name, "backward");
  if (op.view || std::find(kViews.begin(), kViews.end(), name) != kViews.end()) {
    cost.kind = "view";
    return cost;
  }
  cost.kind = "bytes";
  cost.bytes = all_bytes(op);
  if (name == "mm" || name == "bmm" || name == "linear" || name == "matmul") {
    cost.kind = "matmul";
    cost.flops = matmul_flops(op, 0);
  } else if (name == "addmm" || name == "baddbmm" || name == "_addmm_activation") {
    cost.kind = "matmul";
    cost.flops = matmul_flops(op, 1);
  } else if (contains(name, "convolution")) {
    cost.kind = "convolution";
    if (backward)
      cost.flops = convolution_backward_flops(op);
    else if (op.inputs.size() >= 2 && !op.outputs.empty())
      cost.flops = convolution_flops(op, op.outputs[0], op.inputs[0], op.inputs[1]);
  } else if (contains(name, "scaled_dot_product") || contains(name, "_attention_")) {
    cost.kind = "attention";
    cost.flops = attention_flops(op, backward);
  } else if (contains(name, "_rnn") || name == "lstm" || name == "gru") {
    cost.kind = "recurrent";
    cost.flops = recurrent_flops(op, backward);
  } else if (name == "embedding" || name == "index_select" || name == "gather" || name == "index") {
    cost.kind = "gather";  // reads as many elements as it writes, and not the whole table
    cost.bytes = 2 * output_bytes(op);
  } else if (op.inputs.empty() || contains(name, "_like") || name.substr(0, 4) == "new_") {
    cost.kind = "fill";
    cost.bytes = output_bytes(op);
  }
  const std::string& dtype = !op.inputs.empty() ? op.inputs[0].dtype : !op.outputs.empty() ? op.outputs[0].dtype : "float32";
  const double compute_s = cost.flops / profile.flops_per_s(dtype), memory_s = cost.bytes / (profile.memory_gb_per_s * 1e9);
  cost.time_us = profile.launch_us + 1e6 * std::max(compute_s, memory_s);
  return cost;
}

}  // namespace memscale::cost

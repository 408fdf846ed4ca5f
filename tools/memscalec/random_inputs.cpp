// Random inputs. An index out of range is an exception on the CPU, so the largest bound that runs is found by trying.
#include "tools/memscalec/random_inputs.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>

#include "compiler/capture/dtype_names.h"
#include "compiler/driver/shape.h"

namespace memscale::cli {
namespace {

constexpr int64_t kBounds[] = {1 << 15, 1 << 12, 1 << 10, 256, 100, 32, 10, 4, 2, 1};

bool is_integer(at::ScalarType dtype) { return at::isIntegralType(dtype, /*includeBool=*/false); }

int64_t largest_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kChar:
      return 127;
    case at::kByte:
      return 255;
    case at::kShort:
      return 32767;
    default:
      return int64_t{1} << 30;
  }
}

}  // namespace

at::ScalarType scalar_type(const std::string& dtype) {
  if (const auto type = capture::dtype_from_name(dtype)) return *type;
  throw std::runtime_error("the plan has an input of dtype " + dtype + ", which is not replayed");
}

RandomInputs::RandomInputs(const fb::PlanT& plan, uint64_t seed,
                           const std::function<int(const std::vector<at::Tensor>&)>& accepts)
    : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {
  for (const auto& argument : plan.arguments) {
    if (argument->role != fb::Role::Input) continue;
    arguments_.push_back(argument.get());
    dtypes_.push_back(scalar_type(argument->meta->dtype));
  }
  bounds_.assign(arguments_.size(), 1);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!is_integer(dtypes_[i])) continue;
    int best = -1;
    for (int64_t bound : kBounds) {
      if (bound > largest_of(dtypes_[i])) continue;
      std::vector<at::Tensor> inputs;
      for (size_t j = 0; j < arguments_.size(); ++j) inputs.push_back(make(j, j == i ? bound : bounds_[j]));
      // Not left to chance: the largest value is among those that are tried.
      if (inputs[i].numel() > 0) inputs[i].as_strided({1}, {1}, inputs[i].storage_offset()).fill_(bound - 1);
      const int state = accepts(inputs);
      if (state > best) {
        best = state;
        bounds_[i] = bound;
      }
      if (best == 2) break;
    }
  }
  accepted_ = accepts(next());
}

at::Tensor RandomInputs::make(size_t input, int64_t bound) {
  const fb::ArgumentT& argument = *arguments_[input];
  const at::ScalarType dtype = dtypes_[input];
  at::Tensor tensor = at::empty_strided(argument.meta->sizes, argument.meta->strides, at::TensorOptions().dtype(dtype));
  if (dtype == at::kBool) {
    tensor.copy_(at::randint(0, 2, argument.meta->sizes, generator_, at::kLong));
  } else if (is_integer(dtype)) {
    tensor.copy_(at::randint(0, bound, argument.meta->sizes, generator_, at::kLong));
  } else {
    const bool complex = at::isComplexType(dtype);
    tensor.copy_(
        at::randn(argument.meta->sizes, generator_, at::TensorOptions().dtype(complex ? at::kComplexFloat : at::kFloat)));
  }
  return tensor;
}

std::vector<at::Tensor> RandomInputs::next() {
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < arguments_.size(); ++i) inputs.push_back(make(i, bounds_[i]));
  return inputs;
}

std::vector<std::string> RandomInputs::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    std::string text = arguments_[i]->name + ": " + driver::torch_dtype_name(arguments_[i]->meta->dtype) + " [";
    const auto& sizes = arguments_[i]->meta->sizes;
    for (size_t d = 0; d < sizes.size(); ++d) text.append(d == 0 ? "" : ", ").append(std::to_string(sizes[d]));
    text += is_integer(dtypes_[i])    ? "], 0.." + std::to_string(bounds_[i] - 1)
            : dtypes_[i] == at::kBool ? "], true or false"
                                      : "], normal";
    lines.push_back(std::move(text));
  }
  return lines;
}

}  // namespace memscale::cli

// Trains a model.ms.pt for some steps with AdamW: no Python, no torch::jit.
//
//   train MODEL.ms.pt [STEPS] [--int-below N]
//
// Inputs are random, of the shapes that the plan names; integers lie in [0, N) (default 2). Prints the loss of each step and the
// memory of the plan. The first output must be the loss.
#include <memscale/memscale.h>
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

c10::IValue random_input(const memscale::InputSpec& spec, int64_t int_below, c10::Device device) {
  const auto options = torch::TensorOptions().dtype(spec.dtype).device(device);
  torch::Tensor value = torch::empty_strided(spec.sizes, spec.strides, options);
  if (c10::isIntegralType(spec.dtype, /*includeBool=*/true))
    value.random_(0, spec.dtype == torch::kBool ? 2 : int_below);
  else
    value.normal_();
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: train MODEL.ms.pt [STEPS] [--int-below N]\n";
    return 2;
  }
  int steps = 5;
  int64_t int_below = 2;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) == "--int-below" && i + 1 < argc)
      int_below = std::atoll(argv[++i]);
    else
      steps = std::atoi(argv[i]);
  }
  try {
    torch::manual_seed(0);
    memscale::Module model = memscale::load(argv[1]);
    const std::vector<torch::Tensor> parameters = model.parameters();
    const c10::Device device = parameters.empty() ? c10::Device(c10::kCPU) : parameters[0].device();
    std::vector<c10::IValue> inputs;
    for (const auto& spec : model.inputs()) inputs.push_back(random_input(spec, int_below, device));
    torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(1e-3));
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      const torch::Tensor loss = model.forward(inputs)[0];
      loss.backward();
      optimizer.step();
      std::cout << "step " << step << "  loss " << loss.item<double>() << "\n";
    }
    for (const auto& [name, value] : model.memory_stats()) std::cout << name << " = " << value << "\n";
  } catch (const c10::Error& e) {
    std::cerr << e.what_without_backtrace() << "\n";
    return 1;
  }
  return 0;
}

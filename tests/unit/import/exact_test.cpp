// Imported torch.export programs compute, bit for bit, what the exported program's own module() computes: outputs, gradients,
// buffers and written inputs of two training steps, in process and after torch::jit save and load.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/export.h>

#include <sstream>

#include "archives.h"
#include "compiler/import/model_torch.h"

namespace {

using memscale::import::Model;
using Tensors = std::map<std::string, at::Tensor>;

/// Equal in dtype, layout and every bit; NaN equals NaN of the same bits.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  at::Tensor x = a.detach().resolve_conj().resolve_neg().contiguous(), y = b.detach().resolve_conj().resolve_neg().contiguous();
  return x.numel() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

struct Named {
  std::vector<std::string> names;
  at::Tensor tensor;
};

void run_steps(torch::jit::Module module, const std::vector<Named>& parameters, const std::vector<Named>& buffers,
               const Tensors& want, int steps) {
  for (int step = 0; step < steps; ++step) {
    const std::string prefix = std::to_string(step) + ".";
    std::vector<c10::IValue> inputs;
    for (size_t i = 0; want.count("in." + std::to_string(i)) > 0; ++i)
      inputs.emplace_back(want.at("in." + std::to_string(i)).clone());
    at::manual_seed(7 + step);
    c10::IValue result = module.forward(inputs);
    std::vector<at::Tensor> outputs;
    if (result.isTensor()) {
      outputs.push_back(result.toTensor());
    } else {
      for (const c10::IValue& v : result.toTupleRef().elements()) outputs.push_back(v.toTensor());
    }
    at::Tensor total;
    size_t count = 0;
    for (; want.count(prefix + "out." + std::to_string(count)) > 0; ++count) {
      ASSERT_LT(count, outputs.size());
      EXPECT_TRUE(same_bits(outputs[count], want.at(prefix + "out." + std::to_string(count))))
          << "output " << count << " of step " << step;
    }
    EXPECT_EQ(count, outputs.size());
    ASSERT_GT(count, 0u);
    for (const at::Tensor& o : outputs) {
      if (!o.requires_grad()) continue;
      at::Tensor sum = o.to(at::kDouble).sum();
      total = total.defined() ? total + sum : 0 + sum;
    }
    ASSERT_TRUE(total.defined());
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(same_bits(inputs[i].toTensor(), want.at(prefix + "after." + std::to_string(i))))
          << "input " << i << " after step " << step;
    }
    std::vector<at::Tensor> leaves;
    for (const Named& p : parameters) leaves.push_back(p.tensor);
    std::vector<at::Tensor> gradients =
        torch::autograd::grad({total}, leaves, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/false, /*allow_unused=*/true);
    size_t compared = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor wanted;
      for (const std::string& name : parameters[i].names) {
        auto it = want.find(prefix + "grad." + name);
        if (it == want.end()) continue;
        EXPECT_FALSE(wanted.defined()) << name << " has two gradients";
        wanted = it->second;
      }
      ASSERT_EQ(wanted.defined(), gradients[i].defined()) << parameters[i].names[0];
      if (!wanted.defined()) continue;
      ++compared;
      EXPECT_TRUE(same_bits(gradients[i], wanted)) << "gradient of " << parameters[i].names[0] << " in step " << step
                                                   << ", off by " << (gradients[i] - wanted).abs().max().item<double>();
    }
    size_t wanted_gradients = 0;
    for (const auto& [name, tensor] : want) wanted_gradients += name.rfind(prefix + "grad.", 0) == 0;
    EXPECT_EQ(compared, wanted_gradients);
    for (const Named& b : buffers) {
      auto it = want.find(prefix + "buffer." + b.names[0]);
      if (it != want.end()) {
        EXPECT_TRUE(same_bits(b.tensor, it->second)) << "buffer " << b.names[0] << " after step " << step;
      }
    }
  }
}

/// The state's tensors, or their namesakes inside `module`.
void state_of(const Model& model, const torch::jit::Module* module, std::vector<Named>& parameters, std::vector<Named>& buffers) {
  Tensors by_name;
  if (module != nullptr) {
    for (const auto& a : module->named_attributes(/*recurse=*/true)) {
      if (a.value.isTensor()) by_name[a.name] = a.value.toTensor();
    }
  }
  for (const memscale::import::StateTensor& s : model.state) {
    Named n;
    n.names = s.aliases;
    n.names.insert(n.names.begin(), s.name);
    n.tensor = module == nullptr ? s.tensor : by_name.at(s.name);
    EXPECT_EQ(n.tensor.requires_grad(), s.requires_grad) << s.name;
    if (s.requires_grad) {
      parameters.push_back(n);
    } else {
      buffers.push_back(n);
    }
  }
}

class Exact : public ::testing::TestWithParam<std::string> {};

TEST_P(Exact, InProcess) {
  auto model = memscale::import::open(archive(GetParam() + ".pt2"));
  ASSERT_TRUE(bool(model)) << model.error().message;
  std::vector<Named> parameters, buffers;
  state_of(**model, nullptr, parameters, buffers);
  ASSERT_FALSE(parameters.empty());
  run_steps((*model)->module, parameters, buffers, expected_tensors(GetParam()), 2);
}

TEST_P(Exact, SavedAndLoaded) {
  auto model = memscale::import::open(archive(GetParam() + ".pt2"));
  ASSERT_TRUE(bool(model)) << model.error().message;
  std::stringstream file;
  (*model)->module.save(file);
  torch::jit::Module loaded = torch::jit::load(file);
  // TorchScript's optimizing executor has derivatives of its own; torch.jit.optimized_execution(False) is the exact mode.
  torch::jit::setGraphExecutorOptimize(false);
  std::vector<Named> parameters, buffers;
  state_of(**model, &loaded, parameters, buffers);
  run_steps(loaded, parameters, buffers, expected_tensors(GetParam()), 2);
  torch::jit::setGraphExecutorOptimize(true);
}

INSTANTIATE_TEST_SUITE_P(Models, Exact, ::testing::ValuesIn(exact_models()), [](const auto& info) { return info.param; });

TEST(ExactModels, AreWritten) {
  EXPECT_GE(exact_models().size(), 15u) << "make_archives.py did not run; set MEMSCALE_IMPORT_ARCHIVES";
}

}  // namespace

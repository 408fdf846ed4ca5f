// What is read of sound archives: state, tying, structures, inputs, locations, weights left out.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <filesystem>

#include "archives.h"
#include "compiler/import/location.h"
#include "compiler/import/model_torch.h"
#include "compiler/import/pt2_autocast.h"

namespace {

using memscale::import::Model;
using memscale::import::StateTensor;
using Names = std::vector<std::string>;

std::shared_ptr<Model> read(const std::string& name, bool weights = true) {
  memscale::import::OpenOptions options;
  options.read_weights = weights;
  auto model = memscale::import::open(archive(name), options);
  EXPECT_TRUE(bool(model)) << model.error().message;
  return model ? *model : nullptr;
}

/// "name=alias" with flags: p parameter, b buffer or other tensor, g requires a gradient, n not persistent.
Names described(const Model& model) {
  Names out;
  for (const StateTensor& s : model.state) {
    std::string line = s.name;
    for (const std::string& a : s.aliases) line += "=" + a;
    line += s.is_parameter ? " p" : " b";
    if (s.requires_grad) line += "g";
    if (!s.persistent) line += "n";
    out.push_back(line);
  }
  return out;
}

TEST(Export, StateOfTiedModel) {
  auto model = read("tied.pt2");
  EXPECT_EQ(described(*model), (Names{"offsets bn", "count b", "scale bn", "emb.weight=head.weight pg", "bn.weight pg",
                                      "bn.bias pg", "bn.running_mean b", "bn.running_var b", "bn.num_batches_tracked b"}))
      << "the order of the modules: what the root holds, then its children";
  EXPECT_EQ(model->state_names, (Names{"offsets", "count", "scale", "emb.weight", "head.weight", "bn.weight", "bn.bias",
                                       "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"}));
  // 11·8 + 8 + 8 floats; buffers: 1 + 8 + 8 + 3 + 3 floats and one int64.
  EXPECT_EQ(memscale::import::info(*model).parameter_count, 3u);
  EXPECT_EQ(memscale::import::info(*model).parameter_bytes, 104 * 4);
  EXPECT_EQ(memscale::import::info(*model).buffer_bytes, 23 * 4 + 8);
  EXPECT_TRUE(memscale::import::info(*model).has_weights);
  EXPECT_EQ(memscale::import::info(*model).format, "torch.export");
  at::Tensor a = model->module.attr("emb").toModule().attr("weight").toTensor(),
             b = model->module.attr("head").toModule().attr("weight").toTensor();
  EXPECT_TRUE(a.is_same(b)) << "one tensor under both names";
  EXPECT_TRUE(model->state[3].tensor.is_same(a)) << "the state's tensors are the module's";
  EXPECT_TRUE(model->module.hasattr("drop")) << "modules without state are kept";
}

TEST(Export, InputsAndStructures) {
  auto tied = read("tied.pt2");
  EXPECT_EQ(tied->input_structure,
            R"({"names":["x","extra","flag"],"args":[{"leaf":0}],"kwargs":{"extra":{"none":true},"flag":{"const":false}}})");
  EXPECT_EQ(tied->output_structure,
            R"({"dict":{"loss":{"leaf":0},"parts":{"tuple":[{"leaf":1},{"none":true},{"list":[{"leaf":2},{"const":3}]}]}}})");
  ASSERT_EQ(tied->info.inputs.size(), 1u);
  EXPECT_EQ(tied->info.inputs[0].name, "x");
  EXPECT_EQ(tied->info.inputs[0].dtype, "i64");
  EXPECT_TRUE(tied->info.inputs[0].shape_known);
  EXPECT_EQ(tied->info.inputs[0].sizes, (std::vector<int64_t>{2, 3}));

  auto containers = read("containers.pt2");
  EXPECT_EQ(
      containers->input_structure,
      R"({"names":["batch","pairs","scale"],"args":[{"dict":{"x":{"leaf":0},"w":{"leaf":1}}},{"tuple":[{"tuple":[{"leaf":2}]},{"leaf":3}]}],"kwargs":{"scale":{"const":2.0}}})");
  EXPECT_EQ(
      containers->output_structure,
      R"({"type":"make_archives.Pair","context":"namedtuple","keys":["first","second"],"children":[{"leaf":0},{"type":"collections.OrderedDict","context":["a","b"],"children":[{"leaf":1},{"leaf":2}]}]})");

  auto output = read("model_output.pt2");
  EXPECT_EQ(
      output->output_structure,
      R"({"type":"transformers.modeling_outputs.CausalLMOutputWithCrossAttentions","context":["loss","logits"],"children":[{"leaf":0},{"leaf":1}]})");

  auto dynamic = read("dynamic.pt2");
  EXPECT_FALSE(dynamic->info.inputs[0].shape_known);
  EXPECT_EQ(dynamic->info.inputs[0].dtype, "f32");
}

TEST(Export, LocationsAndScopes) {
  auto model = read("tied.pt2");
  size_t dropouts = 0, norms = 0;
  for (torch::jit::Node* n : model->module.get_method("forward").graph()->nodes()) {
    auto where = n->sourceRange().file_line_col();
    std::string kind = n->kind().toQualString(), scope = n->scope()->isRoot() ? "" : n->scope()->name().toUnqualString();
    if (kind != "aten::dropout" && kind != "aten::batch_norm") continue;
    ASSERT_TRUE(where.has_value()) << kind;
    const auto& [file, line, column] = *where;
    EXPECT_EQ(std::filesystem::path(file).filename(), "make_archives.py") << "the user's frame, not torch.nn's";
    std::string code = n->sourceRange().text().str();
    if (kind == "aten::dropout") {
      ++dropouts;
      EXPECT_EQ(scope, "drop");
      EXPECT_NE(code.find("self.drop(h)"), std::string::npos) << code;
      std::ifstream source(file);
      std::string text;
      for (size_t i = 0; i < line; ++i) std::getline(source, text);
      EXPECT_NE(text.find("self.drop(h)"), std::string::npos) << "line " << line << " is " << text;
    } else {
      ++norms;
      EXPECT_EQ(scope, "bn");
    }
  }
  EXPECT_EQ(dropouts, 1u);
  EXPECT_EQ(norms, 1u);
}

TEST(Export, WithoutWeights) {
  auto model = read("tied.pt2", false);
  EXPECT_EQ(described(*model), described(*read("tied.pt2")));
  for (const StateTensor& s : model->state) EXPECT_TRUE(s.tensor.is_meta()) << s.name;
  EXPECT_TRUE(model->info.has_weights) << "the archive has them";
  EXPECT_EQ(model->info.parameter_bytes, 104 * 4);
}

TEST(Export, StructureOnly) {
  auto model = read("structure_only.pt2");
  EXPECT_FALSE(model->info.has_weights);
  bool tied = false;
  for (const StateTensor& s : model->state) {
    EXPECT_TRUE(s.tensor.is_meta()) << s.name;
    tied |= s.name == "transformer.wte.weight" && s.aliases == Names{"lm_head.weight"};
  }
  EXPECT_TRUE(tied) << "tying is inferred from uses";
  auto real = read("model_output.pt2");
  EXPECT_EQ(described(*model), described(*real));
  bool told = false;
  for (const std::string& w : model->warnings)
    told |= w.find("'lm_head.weight'") != std::string::npos || w.find("'transformer.wte.weight'") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(Export, WritesToWeightsStayInMemory) {
  const std::string before = read_file(archive("tied.pt2"));
  auto model = read("tied.pt2");
  for (const StateTensor& s : model->state) s.tensor.detach().zero_();
  model.reset();
  EXPECT_EQ(read_file(archive("tied.pt2")), before);
  at::Tensor weight = read("tied.pt2")->state[0].tensor;  // the model is gone, the tensor keeps the mapping
  EXPECT_GT(weight.abs().sum().item<double>(), 0);
}

TEST(Export, DroppedAssertionsAreTold) {
  auto model = read("kitchen.pt2");
  bool told = false;
  for (const std::string& w : model->warnings) told |= w.find("assertions") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(TorchScript, ScriptedInputs) {
  auto model = read("scripted.pt");
  EXPECT_EQ(model->info.format, "torchscript");
  EXPECT_EQ(
      model->input_structure,
      R"({"names":["x","m","pair","more","table","p","n","flag","mode","late"],"args":[{"leaf":0},{"leaf":1,"optional":true},{"tuple":[{"leaf":2},{"leaf":3}]},{"list":[],"open":true},{"dict":{},"open":true},{"const":0.5},{"const":3},{"const":true},{"const":"sum"},{"leaf":4,"optional":true}],"kwargs":{}})");
  EXPECT_EQ(described(*model), (Names{"note bn", "l.weight pg", "l.bias pg"}));
  ASSERT_EQ(model->info.inputs.size(), 5u);
  EXPECT_EQ(model->info.inputs[2].name, "pair.0");
  EXPECT_TRUE(model->output_structure.empty());
}

TEST(TorchScript, TracedTies) {
  auto model = read("traced_tied.pt");
  EXPECT_EQ(described(*model), (Names{"0.weight=1.weight pg"}));
  EXPECT_EQ(model->info.parameter_count, 1u);
}

TEST(TorchScript, LocationsOfTracesAndScripts) {
  auto traced = read("traced.pt");
  size_t seen = 0;
  for (torch::jit::Node* n : traced->module.get_method("forward").graph()->nodes()) {
    if (n->kind() != c10::Symbol::fromQualString("aten::relu")) continue;
    memscale::import::UserLocation where = memscale::import::user_location(n->sourceRange());
    EXPECT_EQ(std::filesystem::path(where.file).filename(), "zoo.py")
        << "F.relu is called there; torch's own frame is passed over";
    EXPECT_GT(where.line, 100);
    ++seen;
  }
  EXPECT_EQ(seen, 2u);
  auto scripted = read("scripted.pt");
  seen = 0;
  for (torch::jit::Node* n : scripted->module.get_method("forward").graph()->nodes()) {
    if (n->kind() != c10::Symbol::fromQualString("aten::sum")) continue;
    EXPECT_EQ(std::filesystem::path(memscale::import::user_location(n->sourceRange()).file).filename(), "make_archives.py");
    ++seen;
  }
  EXPECT_EQ(seen, 2u);
}

TEST(TorchScript, FoundByContentNotByName) {
  const std::string disguised = archive("disguised.pt2");
  write_file(disguised, read_file(archive("traced.pt")));
  EXPECT_EQ(read("disguised.pt2")->info.format, "torchscript");
}

/// The policies in pt2_autocast.cpp were written for these lists of LibTorch.
TEST(Autocast, ListsOfLibTorch) {
  size_t cpu = 0, cuda = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto op = c10::Dispatcher::singleton().findOp(name);
    cpu += op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU);
    cuda += op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCUDA);
  }
  EXPECT_EQ(cpu, 129u) << "compare the tables in pt2_autocast.cpp with LibTorch's autocast_mode.cpp";
  EXPECT_EQ(cuda, 125u) << "compare the tables in pt2_autocast.cpp with LibTorch's autocast_mode.cpp";
}

TEST(Autocast, Policies) {
  using memscale::import::CastPolicy;
  auto policy = [](const char* name, const char* overload, c10::DeviceType device) {
    return memscale::import::cast_policy(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).schema(), device);
  };
  EXPECT_EQ(policy("aten::linear", "", c10::DeviceType::CPU), CastPolicy::kLower);
  EXPECT_EQ(policy("aten::mse_loss", "", c10::DeviceType::CPU), CastPolicy::kFloat);
  EXPECT_EQ(policy("aten::cat", "", c10::DeviceType::CPU), CastPolicy::kPromote);
  EXPECT_EQ(policy("aten::add", "Tensor", c10::DeviceType::CPU), CastPolicy::kNone);
  EXPECT_EQ(policy("aten::einsum", "", c10::DeviceType::CPU), CastPolicy::kRefuse) << "decomposes to bmm, which has a kernel";
  EXPECT_EQ(policy("aten::einsum", "", c10::DeviceType::CUDA), CastPolicy::kLower);
  EXPECT_EQ(policy("aten::softmax", "int", c10::DeviceType::CUDA), CastPolicy::kFloatDtype);
  EXPECT_EQ(policy("aten::softmax", "int", c10::DeviceType::CPU), CastPolicy::kNone);
  EXPECT_EQ(policy("aten::layer_norm", "", c10::DeviceType::CUDA), CastPolicy::kFloat);
  EXPECT_EQ(policy("aten::binary_cross_entropy", "", c10::DeviceType::CUDA), CastPolicy::kRefuse);
}

}  // namespace

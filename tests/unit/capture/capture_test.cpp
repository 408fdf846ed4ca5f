// Capture of small TorchScript modules: calls, effects, gradients, constants and the errors that users meet.
#include "compiler/capture/capture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/import/model_torch.h"

namespace memscale::capture {
namespace {

/// A model around TorchScript source; parameters and buffers are added by the test.
struct Builder {
  import::Model model;
  Builder() { model.module = torch::jit::Module("__torch__.Net"); }

  void parameter(const std::string& name, at::Tensor tensor, bool requires_grad = true) {
    model.module.register_parameter(name, tensor.set_requires_grad(requires_grad), /*is_buffer=*/false);
    model.state.push_back({name, {}, model.module.attr(name).toTensor(), true, requires_grad, true});
  }
  void buffer(const std::string& name, at::Tensor tensor) {
    model.module.register_parameter(name, tensor, /*is_buffer=*/true);
    model.state.push_back({name, {}, model.module.attr(name).toTensor(), false, false, true});
  }
  Expected<Graph> capture(const std::string& source, std::vector<InputSpec> inputs, const std::string& device = "cpu") {
    model.module.define(source);
    model.info.format = "torchscript";
    std::string args;
    for (size_t i = 0; i < inputs.size(); ++i) {
      model.info.inputs.push_back({inputs[i].name, false, "", {}});
      args += (i ? "," : "") + std::string("{\"leaf\":") + std::to_string(i) + "}";
    }
    model.input_structure = "{\"names\":[],\"args\":[" + args + "],\"kwargs\":{}}";
    Options options;
    options.target.device = device;
    options.target.compute_capability = device == "cuda" ? 90 : 0;
    options.inputs = std::move(inputs);
    return memscale::capture::capture(model, options);
  }
};

std::vector<std::string> names(const Graph& graph, bool backward) {
  std::vector<std::string> list;
  for (const Call& call : graph.calls)
    if (call.backward == backward) list.push_back(call.op.substr(6));
  return list;
}

const Call& call_of(const Graph& graph, const std::string& op) {
  const auto found =
      std::find_if(graph.calls.begin(), graph.calls.end(), [&](const Call& call) { return call.op == "aten::" + op; });
  if (found == graph.calls.end()) throw std::runtime_error("no call of " + op);
  return *found;
}

using Names = std::vector<std::string>;

TEST(Capture, ForwardAndBackwardOfALinearLayer) {
  Builder builder;
  builder.parameter("weight", at::rand({4, 8}));
  const auto graph =
      builder.capture("def forward(self, x):\n    return torch.mm(x, self.weight.t()).sum()\n", {{"x", {16, 8}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(names(*graph, false), (Names{"t", "mm", "sum"}));
  // d sum = expand(tangent); d weight = dy^T · x, of which autograd makes t, mm, t, t: the two last come back to what mm gave.
  EXPECT_EQ(names(*graph, true), (Names{"expand", "t", "mm"}));
  ASSERT_EQ(graph->gradients.size(), 1u);
  const Value& gradient = graph->values[graph->gradients[0].value];
  EXPECT_EQ(gradient.sizes, (std::vector<int64_t>{4, 8}));
  ASSERT_EQ(graph->arguments.size(), 3u);
  EXPECT_EQ(graph->arguments[0].role, Role::kParameter);
  EXPECT_EQ(graph->arguments[1].role, Role::kInput);
  EXPECT_EQ(graph->arguments[2].role, Role::kTangent);
  // t() shares the weight's storage: 4·8 floats.
  const Value& transposed = graph->values[graph->calls[0].results[0].values[0]];
  EXPECT_EQ(transposed.storage, graph->values[graph->arguments[0].value].storage);
  EXPECT_EQ(graph->storages[transposed.storage].bytes, 4 * 8 * 4);
  EXPECT_EQ(transposed.strides, (std::vector<int64_t>{1, 8}));
}

std::vector<std::string> accumulations(const Graph& graph) {
  std::vector<std::string> list;
  for (const Call& call : graph.calls)
    if (call.accumulation) list.push_back(call.op.substr(6));
  return list;
}

TEST(Capture, GradientsOfAReusedParameterAreAddedByAutograd) {
  // Three uses of w: two additions onto what arrived before.
  Builder builder;
  builder.parameter("w", at::rand({4, 4}));
  const auto graph =
      builder.capture("def forward(self, x):\n    return torch.mm(torch.mm(torch.mm(x, self.w), self.w), self.w).sum()\n",
                      {{"x", {2, 4}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(accumulations(*graph), (Names{"add", "add"}));
}

TEST(Capture, AnAdditionBeforeALeafIsNotItsAccumulation) {
  // y = w + c is used twice: the two gradients meet at y, and w receives their sum, once.
  Builder builder;
  builder.parameter("w", at::rand({4, 4}));
  const auto graph =
      builder.capture("def forward(self, x):\n    y = self.w + x\n    return (torch.mm(y, y)).sum()\n", {{"x", {4, 4}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(accumulations(*graph), Names{});
  // w itself and y: one addition at w; the one at y comes before it and stays in the plan.
  Builder both;
  both.parameter("w", at::rand({4, 4}));
  const auto mixed = both.capture("def forward(self, x):\n    y = self.w + x\n    return (torch.mm(y, y) * self.w).sum()\n",
                                  {{"x", {4, 4}, "f32"}});
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(accumulations(*mixed), (Names{"add"}));
  const Names backward = names(*mixed, true);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "add"), 2);
}

TEST(Capture, TensorsFromNumbersAreConstants) {
  Builder builder;
  builder.parameter("w", at::rand({4}));
  const auto graph = builder.capture(
      "def forward(self, x):\n"
      "    t = torch.tensor([1.0, 2.0, 3.0, 4.0])\n"
      "    t[0] = 5.0\n"
      "    return (self.w * x * t).sum() + torch.as_tensor([[1, 2]], dtype=6, device=x.device).sum()\n",
      {{"x", {4}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto constant = std::find_if(graph->arguments.begin(), graph->arguments.end(),
                                     [&](const Argument& a) { return a.role == Role::kConstant && a.data.size() == 16; });
  ASSERT_NE(constant, graph->arguments.end());
  EXPECT_EQ(reinterpret_cast<const float*>(constant->data.data())[1], 2.0f);
}

TEST(Capture, DropoutDrawsOnceAndDeadChecksDropOut) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture(
      "def forward(self, x):\n    return torch.dropout(x * self.weight, 0.5, True).relu_().sum()\n", {{"x", {4, 8}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  int draws = 0;
  for (const Call& call : graph->calls) draws += call.rng;
  EXPECT_EQ(draws, 1);
  EXPECT_TRUE(call_of(*graph, "bernoulli").rng);
  for (const Call& call : graph->calls) EXPECT_TRUE(call.mutates.empty()) << call.op;  // relu_ became relu
  EXPECT_EQ(call_of(*graph, "relu").results.size(), 1u);
}

TEST(Capture, DropoutOfATransposedTensorDrawsInMemoryOrder) {
  // The mask of a (4, 2)-shaped transpose of a (2, 4) tensor is drawn as (2, 4) and seen as (4, 2), as bernoulli_ fills memory.
  Builder builder;
  builder.parameter("weight", at::rand({4}));
  const auto graph = builder.capture("def forward(self, x):\n    return torch.dropout((x * self.weight).t(), 0.5, True).sum()\n",
                                     {{"x", {2, 4}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->values[call_of(*graph, "bernoulli").results[0].values[0]].sizes, (std::vector<int64_t>{2, 4}));
}

TEST(Capture, DropoutIsFusedOnCuda) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture("def forward(self, x):\n    return torch.dropout(x * self.weight, 0.5, True).sum()\n",
                                     {{"x", {4, 8}, "f32"}}, "cuda");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(call_of(*graph, "native_dropout").rng);
  EXPECT_EQ(call_of(*graph, "native_dropout_backward").backward, true);
  EXPECT_EQ(graph->guards.at("device"), "sm_90");
}

TEST(Capture, BatchNormWritesItsStatisticsAndTheCounterIsWrittenBack) {
  Builder builder;
  builder.parameter("weight", at::rand({3}));
  builder.parameter("bias", at::rand({3}));
  builder.buffer("mean", at::zeros({3}));
  builder.buffer("var", at::ones({3}));
  builder.buffer("count", at::zeros({}, at::kLong));
  const auto graph = builder.capture(
      "def forward(self, x):\n    self.count.add_(1)\n"
      "    return torch.batch_norm(x, self.weight, self.bias, self.mean, self.var, True, 0.1, 1e-5, True).sum()\n",
      {{"x", {4, 3, 5, 5}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  const Call& norm = call_of(*graph, "native_batch_norm");
  EXPECT_EQ(norm.mutates, (std::vector<ValueId>{graph->arguments[2].value, graph->arguments[3].value}));
  ASSERT_EQ(graph->writebacks.size(), 1u);
  EXPECT_EQ(graph->writebacks[0].argument, graph->arguments[4].value);
}

TEST(Capture, SizesThatTracingLeavesBehindFoldAway) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture(
      "def forward(self, x):\n    n = torch.floor_divide(torch.tensor(x.size(0) * x.size(1)), torch.tensor(8))\n"
      "    return (x.view(int(n), 64).sum() * self.weight).sum()\n",
      {{"x", {4, 2, 8}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->values[call_of(*graph, "view").results[0].values[0]].sizes, (std::vector<int64_t>{1, 64}));
}

TEST(Capture, FrozenParametersGetNoGradient) {
  Builder builder;
  builder.parameter("frozen", at::rand({8}), /*requires_grad=*/false);
  builder.parameter("trained", at::rand({8}));
  const auto graph =
      builder.capture("def forward(self, x):\n    return (x * self.frozen * self.trained).sum()\n", {{"x", {4, 8}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->gradients.size(), 1u);
  EXPECT_EQ(graph->gradients[0].argument, graph->arguments[1].value);
}

TEST(Capture, LossFirstMeansOneTangent) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph =
      builder.capture("def forward(self, x):\n    y = x * self.weight\n    return y.sum(), y\n", {{"x", {4, 8}, "f32"}});
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->outputs.size(), 2u);
  EXPECT_NE(graph->outputs[0].tangent, kNoValue);
  EXPECT_EQ(graph->outputs[1].tangent, kNoValue);
  EXPECT_TRUE(graph->outputs[1].requires_grad);
  EXPECT_EQ(graph->output_structure, R"({"tuple":[{"leaf":0},{"leaf":1}]})");
}

TEST(CaptureErrors, DataDependentBranchNamesTheOp) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture(
      "def forward(self, x):\n    y = (x * self.weight).sum()\n    if bool(y > 0):\n        y = y * 2\n    return y\n",
      {{"x", {4, 8}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kUnsupported);
  EXPECT_NE(graph.error().message.find("depends on data"), std::string::npos) << graph.error().message;
}

TEST(CaptureErrors, ContentsReadWithoutADispatchedCall) {
  Builder builder;
  builder.parameter("w", at::rand({4}));
  const auto graph =
      builder.capture("def forward(self, x):\n    l: List[float] = (self.w * x).tolist()\n    return (self.w * l[0]).sum()\n",
                      {{"x", {4}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kUnsupported);
  EXPECT_NE(graph.error().message.find("tolist"), std::string::npos) << graph.error().message;
}

TEST(CaptureErrors, ShapesAreAskedFor) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  builder.model.info.inputs.push_back({"mask", false, "", {}});
  const auto graph = builder.capture("def forward(self, mask, x):\n    return (x * self.weight).sum()\n", {{"x", {4, 8}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kUsage);
  EXPECT_NE(graph.error().message.find("mask"), std::string::npos) << graph.error().message;
}

TEST(CaptureErrors, NothingToTrain) {
  Builder builder;
  builder.parameter("weight", at::rand({8}), false);
  const auto graph = builder.capture("def forward(self, x):\n    return (x * self.weight).sum()\n", {{"x", {4, 8}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kCompile);
  EXPECT_NE(graph.error().message.find("requires grad"), std::string::npos);
}

TEST(CaptureErrors, NoDifferentiableOutput) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture("def forward(self, x):\n    return (x * self.weight).argmax()\n", {{"x", {4, 8}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kCompile);
  EXPECT_NE(graph.error().message.find("differentiable"), std::string::npos);
}

TEST(CaptureErrors, ShapeErrorInsideTheModelIsLocated) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  const auto graph = builder.capture("def forward(self, x):\n    return (x * self.weight).sum()\n", {{"x", {4, 7}, "f32"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Exit::kCompile);
  EXPECT_NE(graph.error().message.find("size"), std::string::npos) << graph.error().message;
}

TEST(CaptureErrors, TheDispatcherIsLeftAsItWas) {
  Builder builder;
  builder.parameter("weight", at::rand({8}));
  ASSERT_FALSE(builder.capture("def forward(self, x):\n    return (x * self.weight).sum()\n", {{"x", {4, 7}, "f32"}}));
  at::Tensor x = at::ones({3}).requires_grad_();
  (x * 2).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 2.0)));
}

}  // namespace
}  // namespace memscale::capture

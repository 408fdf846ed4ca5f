// model.ms.pt: written, opened by torch::jit::load, by memscale::load_archive and by the C++ API, trained like the original.
#include "compiler/export/archive.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/import/model_torch.h"
#include "runtime/include/memscale/memscale.h"
#include "tests/unit/runtime/plan_maker.h"

namespace memscale {
namespace {

using test::Mlp;
using torch::jit::Module;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || at::equal(a, b));
}

/// Mlp as a ScriptModule, with a further root attribute, a buffer and a tied name that the plan does not use.
import::Model make_model(bool meta = false){auto unit = std::make_shared<torch::jit::CompilationUnit>();
Module root("__torch__.Mlp", unit, true);
root.register_attribute("training", c10::BoolType::get(), true);
at::manual_seed(11);
const auto options = at::TensorOptions().device(meta ? at::kMeta : at::kCPU);
import::Model model;
for (const char* name : {"fc1", "fc2"}) {
  const bool first = std::string(name) == "fc1";
  Module fc(std::string("__torch__.") + name, unit, true);
  fc.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& [leaf, sizes] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"weight", first ? std::vector<int64_t>{8, 5} : std::vector<int64_t>{3, 8}}, {"bias", {first ? 8 : 3}}}) {
    at::Tensor t = at::randn(sizes, options);
    if (leaf == "bias") t = at::randn({sizes[0] + 2}, options).slice(0, 2);  // inside a larger storage
    t = t.detach().requires_grad_(true);
    fc.register_parameter(leaf, t, false);
    model.state.push_back({std::string(name) + "." + leaf, {}, t, true, true, true});
  }
  root.register_module(name, fc);
}
root.register_buffer("unused", at::arange(4, options));
root.register_parameter("tied", root.attr("fc1").toModule().attr("weight").toTensor(), false);
root.register_attribute("scale", c10::FloatType::get(), 1.5);
root.define(R"(
def helper(self, y):
    return torch.mean(y * y)
def forward(self, x, scale: float = 1.0):
    h = torch.addmm(self.fc1.bias, x, torch.t(self.fc1.weight))
    d = torch.dropout(torch.relu(h), 0.5, self.training)
    return self.helper(torch.addmm(self.fc2.bias, d, torch.t(self.fc2.weight)))
)");
model.module = root;
model.info.format = "torchscript";
return model;
}  // namespace

fb::PlanT make_plan() {
  Mlp mlp(true);
  mlp.m.plan.input_structure = R"({"names":["x","scale"],"args":[{"leaf":0},{"const":1.0}],"kwargs":{}})";
  mlp.m.plan.output_structure = R"({"leaf":0})";
  mlp.m.plan.predicted_peak_bytes = 12345;
  const auto bytes = runtime::write_plan(mlp.m.plan);
  return runtime::read_plan(bytes.data(), bytes.size());
}

class Archive : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("memscale_archive_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "model.ms.pt";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const import::Model& model) {
    fb::PlanT plan = make_plan();
    const auto done = exporter::write_archive(model, plan, path_);
    ASSERT_TRUE(done) << done.error().message;
  }
  /// A copy with leaf parameters of its own.
  static Module reloaded(const import::Model& model) {
    std::stringstream bytes;
    model.module.save(bytes);
    return torch::jit::load(bytes);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  std::filesystem::path folder_, path_;
};

std::map<std::string, at::Tensor> train(Module& module, const at::Tensor& x, std::vector<at::Tensor>* losses) {
  at::manual_seed(77);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = module.forward({x}).toTensor();
    losses->push_back(loss.detach().clone());
    loss.backward();
  }
  std::map<std::string, at::Tensor> gradients;
  for (const auto& p : module.named_parameters()) gradients[p.name] = p.value.grad();
  return gradients;
}

TEST_F(Archive, TrainsAsTheOriginalThroughTorchScript) {
  const import::Model model = make_model();
  write(model);
  EXPECT_EQ(files(), std::vector<std::string>{"model.ms.pt"});
  Module original = reloaded(model), planned = torch::jit::load(path_);
  const at::Tensor x = at::randn({4, 5});
  std::vector<at::Tensor> expected, got;
  const auto expected_gradients = train(original, x, &expected), gradients = train(planned, x, &got);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(expected[i], got[i]));
  ASSERT_EQ(gradients.size(), expected_gradients.size());
  for (const auto& [name, g] : expected_gradients) EXPECT_TRUE(same_bits(g, gradients.at(name))) << name;
}

TEST_F(Archive, KeepsNamesOrderTyingBuffersAndAttributes) {
  const import::Model model = make_model();
  write(model);
  Module planned = torch::jit::load(path_);
  std::vector<std::string> names, expected;
  for (const auto& p : planned.named_parameters()) names.push_back(p.name);
  for (const auto& p : model.module.named_parameters()) expected.push_back(p.name);
  EXPECT_EQ(names, expected);
  EXPECT_TRUE(planned.attr("tied").toTensor().is_alias_of(planned.attr("fc1").toModule().attr("weight").toTensor()));
  EXPECT_TRUE(same_bits(planned.attr("unused").toTensor(), at::arange(4)));
  EXPECT_EQ(planned.attr("scale").toDouble(), 1.5);
  for (const auto& p : planned.parameters()) EXPECT_TRUE(p.requires_grad());
  const auto& schema = planned.get_method("forward").function().getSchema();
  ASSERT_EQ(schema.arguments().size(), 3u);
  EXPECT_EQ(schema.arguments()[2].name(), "scale");
  EXPECT_EQ(schema.arguments()[2].default_value()->toDouble(), 1.0);
  EXPECT_TRUE(planned.find_method("helper").has_value());
}

TEST_F(Archive, FallsBackWhereThePlanDoesNotApply) {
  const import::Model model = make_model();
  write(model);
  Module original = reloaded(model), planned = torch::jit::load(path_);
  const auto count = [&] {
    torch::jit::Stack stack = {planned.attr("_memscale_plan")};
    c10::Dispatcher::singleton().findSchemaOrThrow("memscale::memory_stats", "").callBoxed(stack);
    return stack[0].toGenericDict().at("fallbacks").toInt();
  };
  const at::Tensor x = at::randn({7, 5});  // another batch size
  at::manual_seed(1);
  const at::Tensor expected = original.forward({x}).toTensor();
  at::manual_seed(1);
  EXPECT_TRUE(same_bits(expected.detach(), planned.forward({x}).toTensor().detach()));
  EXPECT_EQ(count(), 1);
  planned.forward({at::randn({4, 5}), 2.0});  // another constant
  EXPECT_EQ(count(), 2);
  planned.eval();
  original.eval();
  const at::Tensor y = at::randn({4, 5});
  EXPECT_TRUE(same_bits(original.forward({y}).toTensor().detach(), planned.forward({y}).toTensor().detach()));
  EXPECT_EQ(count(), 3);
  planned.train();
  planned.forward({y});
  EXPECT_EQ(count(), 3);
}

TEST_F(Archive, SavedAgainAndCopiedItStillRuns) {
  write(make_model());
  Module planned = torch::jit::load(path_);
  const auto again = folder_ / "again.pt";
  planned.save(again);
  const at::Tensor x = at::randn({4, 5});
  Module copies[] = {torch::jit::load(again), planned.deepcopy(), planned.copy()};
  at::manual_seed(5);
  const at::Tensor expected = planned.forward({x}).toTensor().detach();
  for (Module& m : copies) {
    at::manual_seed(5);
    const at::Tensor loss = m.forward({x}).toTensor();
    EXPECT_TRUE(same_bits(loss.detach(), expected));
    loss.backward();
  }
}

TEST_F(Archive, CppApiTrainsWithoutTorchScript) {
  const import::Model model = make_model();
  write(model);
  memscale::Module planned = memscale::load(path_);
  for (const auto& [name, tensor] : planned.named_parameters())
    for (const auto& s : model.state)
      if (s.name == name) {
        EXPECT_TRUE(same_bits(tensor.detach(), s.tensor.detach())) << name;
      }
  ASSERT_EQ(planned.inputs().size(), 1u);
  EXPECT_EQ(planned.inputs()[0].sizes, (std::vector<int64_t>{4, 5}));
  Module original = reloaded(model);
  const at::Tensor x = at::randn({4, 5});
  at::manual_seed(3);
  original.forward({x}).toTensor().backward();
  at::manual_seed(3);
  planned.forward({x})[0].backward();
  for (const auto& p : original.named_parameters())
    for (const auto& [name, tensor] : planned.named_parameters())
      if (p.name == name) {
        EXPECT_TRUE(same_bits(p.value.grad(), tensor.grad())) << name;
      }
  EXPECT_EQ(planned.memory_stats().at("predicted_peak_bytes"), 12345);
  EXPECT_GT(planned.memory_stats().at("measured_peak_bytes"), 0);
  EXPECT_NE(planned.guard_failure({at::randn({1, 5})}), "");
  planned.load("fc1.bias", at::zeros({8}));
  EXPECT_THROW(planned.load("fc9.bias", at::zeros({8})), c10::Error);
  EXPECT_THROW(planned.load("fc1.bias", at::zeros({9})), c10::Error);
}

int64_t fallbacks(const Module& planned) {
  torch::jit::Stack stack = {planned.attr("_memscale_plan")};
  c10::Dispatcher::singleton().findSchemaOrThrow("memscale::memory_stats", "").callBoxed(stack);
  return stack[0].toGenericDict().at("fallbacks").toInt();
}

TEST_F(Archive, NestedInputsAndOutputs) {
  Module root("__torch__.Nested", std::make_shared<torch::jit::CompilationUnit>(), true);
  root.define(R"(
def forward(self, x: Tensor, extra: Optional[Tensor], pair: Tuple[Tensor, List[Tensor]], named: Dict[str, Tensor], *, flag: bool = True) -> Tuple[Tensor, Dict[str, Tensor], Optional[Tensor]]:
    return x + pair[0], {"product": named["a"] * pair[1][0]}, extra
)");
  import::Model model;
  model.module = root;
  model.info.format = "torchscript";
  test::PlanMaker m;
  const int x = m.input("x", {2}), p0 = m.input("p0", {2}), p1 = m.input("p1", {2}), a = m.input("a", {2});
  m.output(m.call("aten::add.Tensor", {test::R(x), test::R(p0), test::I(1)}), {2}, false, false);
  m.output(m.call("aten::mul.Tensor", {test::R(a), test::R(p1)}), {2}, false, false);
  m.plan.input_structure =
      R"({"names":["x","extra","pair","named","flag"],"args":[{"leaf":0},{"none":true},{"tuple":[{"leaf":1},{"list":[{"leaf":2}]}]},
          {"dict":{"a":{"leaf":3}}}],"kwargs":{"flag":{"const":true}}})";
  m.plan.output_structure = R"({"tuple":[{"leaf":0},{"dict":{"product":{"leaf":1}}},{"none":true}]})";
  fb::PlanT& plan = m.finish();
  const auto done = exporter::write_archive(model, plan, path_);
  ASSERT_TRUE(done) << done.error().message;
  Module planned = torch::jit::load(path_);
  const at::Tensor t[] = {at::randn({2}), at::randn({2}), at::randn({2}), at::randn({2})};
  c10::Dict<std::string, at::Tensor> named;
  named.insert("a", t[3]);
  const auto call = [&](c10::IValue extra) {
    return planned.forward({t[0], std::move(extra), std::make_tuple(t[1], c10::List<at::Tensor>({t[2]})), named}).toTuple();
  };
  const auto out = call({});
  EXPECT_EQ(fallbacks(planned), 0);
  EXPECT_TRUE(same_bits(out->elements()[0].toTensor(), t[0] + t[1]));
  EXPECT_TRUE(same_bits(out->elements()[1].toGenericDict().at("product").toTensor(), t[3] * t[2]));
  EXPECT_TRUE(out->elements()[2].isNone());
  const auto other = call(t[0]);  // extra was None at compile time
  EXPECT_EQ(fallbacks(planned), 1);
  EXPECT_TRUE(other->elements()[2].toTensor().is_same(t[0]));
  named.insert("b", t[3]);
  call({});
  EXPECT_EQ(fallbacks(planned), 2);
}

TEST_F(Archive, FlatModelsAndNamedTuples) {
  for (const bool flat : {true, false}) {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    Module root("__torch__.Flat", unit, true);
    auto graph = std::make_shared<torch::jit::Graph>();
    graph->addInput("self")->setType(root.type());
    torch::jit::Value* x = graph->addInput("x")->setType(c10::TensorType::get());
    torch::jit::Value* y = graph->addInput("y")->setType(c10::TensorType::get());
    torch::jit::Value* sum = graph->insert(c10::aten::add, {x, y});
    torch::jit::Value* product = graph->insert(c10::aten::mul, {x, y});
    torch::jit::Node* tuple = graph->insertNode(graph->createTuple({sum, product}));
    if (!flat) {
      const auto type =
          c10::TupleType::createNamed(c10::QualifiedName("__torch__.Pair"), std::vector<std::string>{"sum", "product"},
                                      {c10::TensorType::get(), c10::TensorType::get()});
      unit->register_type(type);
      tuple->output()->setType(type);
    }
    graph->registerOutput(tuple->output());
    root.type()->addMethod(unit->create_function(c10::QualifiedName(*root.type()->name(), "forward"), graph));
    import::Model model;
    model.module = root;
    model.info.format = flat ? "torch.export" : "torchscript";
    test::PlanMaker m;
    const int a = m.input("x", {2}), b = m.input("y", {2});
    m.output(m.call("aten::add.Tensor", {test::R(a), test::R(b), test::I(1)}), {2}, false, false);
    m.output(m.call("aten::mul.Tensor", {test::R(a), test::R(b)}), {2}, false, false);
    m.plan.input_structure = flat ? R"({"names":["batch"],"args":[{"dict":{"x":{"leaf":0},"y":{"leaf":1}}}],"kwargs":{}})"
                                  : R"({"names":["x","y"],"args":[{"leaf":0},{"leaf":1}],"kwargs":{}})";
    m.plan.output_structure =
        flat ? R"({"dict":{"sum":{"leaf":0},"product":{"leaf":1}}})"
             : R"({"type":"__torch__.Pair","context":"namedtuple","keys":["sum","product"],"children":[{"leaf":0},{"leaf":1}]})";
    fb::PlanT& plan = m.finish();
    const auto done = exporter::write_archive(model, plan, path_);
    ASSERT_TRUE(done) << done.error().message;
    Module planned = torch::jit::load(path_);
    const at::Tensor tx = at::randn({2}), ty = at::randn({2});
    const auto out = planned.forward({tx, ty}).toTuple();
    EXPECT_EQ(fallbacks(planned), 0);
    EXPECT_TRUE(same_bits(out->elements()[1].toTensor(), tx * ty));
    EXPECT_EQ(out->type()->schema() != nullptr, !flat);
  }
}

TEST_F(Archive, StructureOnlyModelsHaveNoRecords) {
  write(make_model(/*meta=*/true));
  EXPECT_THROW(memscale::load(path_), c10::Error);
  memscale::Module planned = memscale::load(path_, {/*load_weights=*/false, {}});
  for (const auto& [name, tensor] : planned.named_parameters()) {
    EXPECT_TRUE(tensor.is_meta());
    planned.load(name, at::randn(tensor.sizes()));
  }
  planned.forward({at::randn({4, 5})})[0].backward();
  for (const auto& p : planned.parameters()) EXPECT_TRUE(p.grad().defined());
}

TEST_F(Archive, WritingTwiceGivesTheSameBytes) {
  const auto bytes = [&] {
    std::ifstream in(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  write(make_model());
  const std::string first = bytes();
  write(make_model());
  EXPECT_TRUE(first == bytes());
}

TEST_F(Archive, ErrorsLeaveNoFile) {
  fb::PlanT plan = make_plan();
  const auto no_folder = exporter::write_archive(make_model(), plan, folder_ / "missing" / "model.ms.pt");
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().code, Exit::kUsage);
  plan.input_structure = R"({"names":["x"],"args":[{"missing":"int"},{"const":1}],"kwargs":{}})";
  const auto structure = exporter::write_archive(make_model(), plan, path_);
  ASSERT_FALSE(structure);
  EXPECT_EQ(structure.error().code, Exit::kUnsupported);
  plan = make_plan();
  plan.arguments[0]->name = "fc7.weight";
  const auto name = exporter::write_archive(make_model(), plan, path_);
  ASSERT_FALSE(name);
  EXPECT_TRUE(files().empty());
}

TEST_F(Archive, DamagedArchivesAreRefused) {
  write(make_model());
  std::ifstream in(path_, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  const auto broken = folder_ / "broken.pt";
  unsigned seed = 1;
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string copy = whole;
    for (int k = 0; k < 6; ++k) copy[rand_r(&seed) % copy.size()] = static_cast<char>(rand_r(&seed));
    if (round % 3 == 0) copy.resize(rand_r(&seed) % copy.size());
    std::ofstream(broken, std::ios::binary) << copy;
    try {
      memscale::load(broken);
    } catch (const c10::Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_THROW(memscale::load(folder_ / "nothing.pt"), c10::Error);
}

}  // namespace memscale
}  // namespace memscale

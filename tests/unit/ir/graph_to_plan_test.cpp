// Graph → IR → planned and proven step → fb::PlanT, on graphs made by hand.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "compiler/driver/ir_from_graph.h"
#include "compiler/export/plan_from_ir.h"
#include "passes/Pipelines.h"
#include "runtime/core/reader.h"

namespace memscale {
namespace {

using namespace capture;

/// Blocks of matmul, tanh and dropout. Tensors are 16x16 float32: 1 KiB.
class Network {
 public:
  explicit Network(int blocks) {
    graph_.target = "cpu";
    x_ = argument(capture::Role::kInput, "x", {16, 16});
    for (int i = 0; i < blocks; ++i) {
      weights_.push_back(argument(capture::Role::kParameter, "h." + std::to_string(i) + ".weight", {16, 16}));
      graph_.arguments.back().requires_grad = true;
    }
    tangent_ = argument(capture::Role::kTangent, "loss", {});
    forward(blocks);
    backward(blocks);
  }
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }

 private:
  ValueId value(std::vector<int64_t> sizes, std::vector<int64_t> strides, StorageId storage, const std::string& dtype = "f32") {
    const int64_t bytes =
        std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()) * (dtype == "bool" ? 1 : 4);
    if (storage < 0) {
      storage = static_cast<StorageId>(graph_.storages.size());
      graph_.storages.push_back({bytes, Place::kTarget});
    }
    graph_.values.push_back({dtype, std::move(sizes), std::move(strides), 0, storage, Place::kTarget});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }
  static std::vector<int64_t> contiguous(const std::vector<int64_t>& sizes) {
    return sizes.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{sizes[1], 1};
  }
  ValueId argument(capture::Role role, const std::string& name, const std::vector<int64_t>& sizes) {
    Argument a;
    a.role = role;
    a.name = name;
    a.value = value(sizes, contiguous(sizes), -1);
    graph_.arguments.push_back(a);
    return a.value;
  }
  Call& call(const std::string& op, std::vector<Arg> args, std::vector<ValueId> results, int block, bool backward) {
    Call c;
    c.op = op;
    c.args = std::move(args);
    for (ValueId id : results) c.results.push_back({Result::Kind::kTensor, {id}});
    c.backward = backward;
    c.workspace_bytes = 0;
    if (block >= 0) c.location = {"net.py", 10 + block, "h." + std::to_string(block)};
    graph_.calls.push_back(std::move(c));
    return graph_.calls.back();
  }
  ValueId tensor() { return value({16, 16}, {16, 1}, -1); }
  ValueId transposed(ValueId of) { return value({16, 16}, {1, 16}, graph_.values[of].storage); }

  void forward(int blocks) {
    ValueId at = x_;
    for (int i = 0; i < blocks; ++i) {
      inputs_.push_back(at);
      const ValueId h = tensor(), t = tensor(), d = tensor(), mask = value({16, 16}, {16, 1}, -1, "bool");
      call("aten::mm", {Operand{at}, Operand{weights_[i]}}, {h}, i, false);
      call("aten::tanh", {Operand{h}}, {t}, i, false);
      call("aten::native_dropout", {Operand{t}, 0.5, true}, {d, mask}, i, false).rng = true;
      tanhs_.push_back(t);
      masks_.push_back(mask);
      at = d;
    }
    const ValueId loss = value({}, {}, -1);
    call("aten::sum", {Operand{at}, None{}}, {loss}, -1, false);
    graph_.outputs.push_back({loss, true, tangent_});
    graph_.backward_begin = graph_.calls.size();
  }
  void backward(int blocks) {
    ValueId at = value({16, 16}, {0, 0}, graph_.values[tangent_].storage);
    call("aten::expand", {Operand{tangent_}, std::vector<int64_t>{16, 16}, false}, {at}, -1, true);
    for (int i = blocks - 1; i >= 0; --i) {
      const ValueId d = tensor(), t = tensor(), w = tensor(), turned = transposed(inputs_[i]);
      call("aten::native_dropout_backward", {Operand{at}, Operand{masks_[i]}, 2.0}, {d}, i, true);
      call("aten::tanh_backward", {Operand{d}, Operand{tanhs_[i]}}, {t}, i, true);
      call("aten::t", {Operand{inputs_[i]}}, {turned}, i, true);
      call("aten::mm", {Operand{turned}, Operand{t}}, {w}, i, true);
      graph_.gradients.push_back({weights_[i], w});
      if (i == 0) continue;
      const ValueId wt = transposed(weights_[i]), g = tensor();
      call("aten::t", {Operand{weights_[i]}}, {wt}, i, true);
      call("aten::mm", {Operand{t}, Operand{wt}}, {g}, i, true);
      at = g;
    }
  }

  Graph graph_;
  ValueId x_, tangent_;
  std::vector<ValueId> weights_, inputs_, tanhs_, masks_;
};

passes::PlanningOptions options() {
  passes::PlanningOptions options;
  options.costs.time_us = [](ir::KernelOpInterface kernel) { return kernel.getSchema() == "aten::mm" ? 50.0 : 5.0; };
  options.costs.workspace_bytes = [](ir::KernelOpInterface) { return int64_t{0}; };
  return options;
}

/// Context with the text of its last error.
struct Context {
  mlir::MLIRContext context;
  std::string errors;
  Context() {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) {
      if (d.getSeverity() == mlir::DiagnosticSeverity::Error) errors += d.str() + "\n";
      return mlir::success();
    });
  }
};

fb::PlanT compile(Context& context, const Graph& graph, const passes::PlanningOptions& how, passes::PlanningResult& result) {
  auto module = driver::ir_from_graph(context.context, graph);
  EXPECT_TRUE(module) << context.errors;
  EXPECT_TRUE(mlir::succeeded(passes::runPlanning(*module, how, result))) << context.errors;
  auto plan = exporter::plan_from_ir(*module->getOps<ir::StepOp>().begin());
  EXPECT_TRUE(static_cast<bool>(plan));
  runtime::check_plan(*plan);  // throws on a fault
  return std::move(*plan);
}

size_t recomputes(const fb::PlanT& plan) {
  return std::count_if(plan.backward.begin(), plan.backward.end(), [](const auto& i) { return i->recompute; });
}

TEST(GraphToPlan, WithoutABudgetNothingRunsAgain) {
  Context context;
  passes::PlanningResult result;
  const fb::PlanT plan = compile(context, Network(4).graph(), options(), result);
  EXPECT_EQ(recomputes(plan), 0u);
  EXPECT_EQ(plan.rng_slot_count, 0u);
  EXPECT_LE(result.planned_peak_bytes, result.save_all_peak_bytes);
  EXPECT_EQ(result.time_us, result.base_time_us);
}

TEST(GraphToPlan, OneSegmentPerBlockAndEveryGradientOnce) {
  Context context;
  passes::PlanningResult result;
  const fb::PlanT plan = compile(context, Network(4).graph(), options(), result);
  ASSERT_EQ(plan.segments.size(), 4u);
  std::set<int32_t> seen;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.segments[i]->name, "h." + std::to_string(3 - i));
    ASSERT_EQ(plan.segments[i]->gradients.size(), 1u);
    seen.insert(plan.segments[i]->gradients[0]->argument);
    EXPECT_EQ(plan.segments[i]->frees, std::vector<int32_t>{plan.segments[i]->gradients[0]->reg});
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST(GraphToPlan, WithoutBlocksSegmentsHoldSixteenGradients) {
  Network network(40);
  for (Call& call : network.graph().calls) call.location = {};
  Context context;
  passes::PlanningResult result;
  const fb::PlanT plan = compile(context, network.graph(), options(), result);
  ASSERT_EQ(plan.segments.size(), 3u);
  EXPECT_EQ(plan.segments[0]->gradients.size(), 16u);
  EXPECT_EQ(plan.segments[1]->gradients.size(), 16u);
  EXPECT_EQ(plan.segments[2]->gradients.size(), 8u);
}

TEST(GraphToPlan, TheSmallestPeakRecomputesAndReplaysItsDraws) {
  Context context;
  passes::PlanningResult result;
  passes::PlanningOptions how = options();
  how.minimize = true;
  const fb::PlanT plan = compile(context, Network(8).graph(), how, result);
  EXPECT_LT(result.planned_peak_bytes, result.save_all_peak_bytes);
  EXPECT_GT(recomputes(plan), 0u);
  EXPECT_GT(result.time_us, result.base_time_us);
  std::set<int32_t> saved, replayed;
  for (const auto& i : plan.forward) {
    if (i->rng_save == -1) continue;
    EXPECT_TRUE(saved.insert(i->rng_save).second);
  }
  for (const auto& i : plan.backward)
    if (i->rng_replay != -1) replayed.insert(i->rng_replay);
  EXPECT_FALSE(replayed.empty());
  EXPECT_EQ(saved, replayed);
}

TEST(GraphToPlan, ABudgetIsKept) {
  for (double fraction : {0.9, 0.8, 0.7}) {
    Context context;
    passes::PlanningResult result;
    passes::PlanningOptions how = options();
    how.budget_fraction = fraction;
    compile(context, Network(8).graph(), how, result);
    EXPECT_LE(result.planned_peak_bytes, static_cast<int64_t>(fraction * result.save_all_peak_bytes)) << fraction;
  }
}

TEST(GraphToPlan, AnImpossibleBudgetSaysWhy) {
  Context context;
  passes::PlanningResult result;
  passes::PlanningOptions how = options();
  how.budget_bytes = 1024;
  auto module = driver::ir_from_graph(context.context, Network(2).graph());
  ASSERT_TRUE(module);
  EXPECT_TRUE(mlir::failed(passes::runPlanning(*module, how, result)));
  EXPECT_FALSE(result.feasible);
  EXPECT_NE(result.infeasible.find("cannot be met"), std::string::npos) << result.infeasible;
}

TEST(GraphToPlan, TheSameGraphGivesTheSameBytes) {
  passes::PlanningOptions how = options();
  how.budget_fraction = 0.75;
  std::vector<uint8_t> first;
  for (int round = 0; round < 2; ++round) {
    Context context;
    passes::PlanningResult result;
    const auto bytes = runtime::write_plan(compile(context, Network(8).graph(), how, result));
    if (round == 0) first = bytes;
    EXPECT_EQ(bytes, first);
  }
}

TEST(GraphToPlan, AGradientOutsideOfTheGraphIsAFault) {
  Network network(2);
  network.graph().gradients[0].argument = network.graph().gradients[0].value;
  Context context;
  EXPECT_FALSE(driver::ir_from_graph(context.context, network.graph()));
  EXPECT_NE(context.errors.find("a gradient belongs to no argument"), std::string::npos) << context.errors;
}

TEST(GraphToPlan, AResultOverForeignMemoryIsAFault) {
  Network network(2);
  // tanh of block 1 claims the memory of block 0's mask.
  network.graph().values[network.graph().calls[4].results[0].values[0]].storage =
      network.graph().values[network.graph().calls[2].results[1].values[0]].storage;
  Context context;
  EXPECT_FALSE(driver::ir_from_graph(context.context, network.graph()));
  EXPECT_NE(context.errors.find("shares memory with a tensor that is none of its operands"), std::string::npos) << context.errors;
}

TEST(GraphToPlan, AnUndefinedGradientIsHandedOverAsUndefined) {
  Network network(2);
  network.graph().gradients[1].value = kNoValue;
  Context context;
  passes::PlanningResult result;
  const fb::PlanT plan = compile(context, network.graph(), options(), result);
  size_t undefined = 0;
  for (const auto& segment : plan.segments)
    for (const auto& g : segment->gradients) undefined += g->reg == -1;
  EXPECT_EQ(undefined, 1u);
}

}  // namespace
}  // namespace memscale

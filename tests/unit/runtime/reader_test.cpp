// The plan reader: round trip, each check by a plan that breaks it, and random damage.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit/runtime/plan_maker.h"

namespace memscale {
namespace {

using runtime::Fault;
using runtime::PlanError;
using runtime::read_plan;
using runtime::write_plan;
using test::Mlp;

std::string error_of(const fb::PlanT& plan) {
  const auto bytes = write_plan(plan);
  try {
    read_plan(bytes.data(), bytes.size());
  } catch (const PlanError& e) {
    return e.what();
  }
  return "";
}

TEST(Reader, RoundTripKeepsEveryField) {
  Mlp mlp(true);
  const auto bytes = write_plan(mlp.m.plan);
  const fb::PlanT again = read_plan(bytes.data(), bytes.size());
  EXPECT_EQ(write_plan(again), bytes);
  EXPECT_EQ(again.segments.size(), 2u);
  EXPECT_EQ(again.backward.size(), mlp.m.plan.backward.size());
}

TEST(Reader, RefusesOtherBytes) {
  const std::vector<uint8_t> junk(100, 7);
  EXPECT_THROW(read_plan(junk.data(), junk.size()), PlanError);
  EXPECT_THROW(read_plan(nullptr, 0), PlanError);
  EXPECT_THROW(read_plan(junk.data(), 3), PlanError);
}

TEST(Reader, VersionIsNamed) {
  Mlp mlp(false);
  mlp.m.plan.version = 9;
  EXPECT_NE(error_of(mlp.m.plan).find("format version 9, this runtime reads version 1"), std::string::npos);
}

struct Damage {
  const char* name;
  std::function<void(fb::PlanT&)> apply;
  const char* message;  // part of the error
};

class Damaged : public testing::TestWithParam<Damage> {};

TEST_P(Damaged, IsRefusedByName) {
  Mlp mlp(true);
  ASSERT_EQ(error_of(mlp.m.plan), "");
  GetParam().apply(mlp.m.plan);
  EXPECT_NE(error_of(mlp.m.plan).find(GetParam().message), std::string::npos) << error_of(mlp.m.plan);
}

const Damage kDamages[] = {
    {"register_out_of_range", [](fb::PlanT& p) { p.forward[1]->args[0]->i = 10000; }, "names register 10000"},
    {"negative_register", [](fb::PlanT& p) { p.forward[1]->args[0]->i = -1; }, "names register -1"},
    {"read_before_definition", [](fb::PlanT& p) { p.forward[0]->args[0]->i = p.forward[1]->results[0]->regs[0]; },
     "holds no value"},
    {"read_after_free", [](fb::PlanT& p) { p.forward[0]->frees.push_back(p.arguments[1]->reg); }, "holds no value"},
    {"freed_twice", [](fb::PlanT& p) { p.forward_frees.push_back(p.forward_frees.at(0)); }, "holds no value"},
    {"assigned_twice", [](fb::PlanT& p) { p.forward[1]->results[0]->regs[0] = p.arguments[2]->reg; }, "still holds a value"},
    {"operator_out_of_range", [](fb::PlanT& p) { p.forward[0]->op = 99; }, "names operator 99"},
    {"location_out_of_range", [](fb::PlanT& p) { p.forward[0]->location = 99; }, "bad location"},
    {"unknown_kind", [](fb::PlanT& p) { p.forward[1]->args[3]->kind = static_cast<fb::ArgKind>(77); }, "unknown kind"},
    {"too_many_registers", [](fb::PlanT& p) { p.register_count = 1u << 30; }, "more registers"},
    {"replay_without_save",
     [](fb::PlanT& p) {
       for (auto& i : p.forward) i->rng_save = -1;
     },
     "not saved before"},
    {"slot_out_of_range", [](fb::PlanT& p) { p.forward[0]->rng_save = 5; }, "rng slot 5 of 1"},
    {"segments_overlap", [](fb::PlanT& p) { p.segments[1]->begin -= 1; }, "expected it to begin"},
    {"segments_incomplete", [](fb::PlanT& p) { p.segments.pop_back(); }, "the segments cover"},
    {"gradient_beside_none",
     [](fb::PlanT& p) {
       p.segments[1]->gradients[0]->argument = p.segments[1]->gradients[1]->argument;
       p.segments[1]->gradients[0]->reg = -1;
     },
     "both a gradient and none"},
    {"state_name_unknown", [](fb::PlanT& p) { p.state_names = {"bogus"}; }, "state name 'bogus'"},
    {"state_names_incomplete", [](fb::PlanT& p) { p.state_names = {p.arguments[0]->name}; }, "state names"},
    {"gradient_of_input", [](fb::PlanT& p) { p.segments[1]->gradients[0]->argument = 4; }, "requires none"},
    {"argument_out_of_range", [](fb::PlanT& p) { p.segments[1]->gradients[0]->argument = 400; }, "names argument 400"},
    {"tangent_elsewhere", [](fb::PlanT& p) { p.outputs[0]->tangent = 0; }, "no tangent argument"},
    {"tangent_of_nothing", [](fb::PlanT& p) { p.outputs[0]->tangent = -1; }, "belongs to no output"},
    {"negative_size", [](fb::PlanT& p) { p.arguments[0]->meta->sizes[0] = -8; }, "bad size or stride"},
    {"overflowing_size",
     [](fb::PlanT& p) {
       p.arguments[0]->meta->sizes = {int64_t{1} << 40, int64_t{1} << 40};
     },
     "more elements"},
    {"overflowing_stride", [](fb::PlanT& p) { p.arguments[0]->meta->strides[0] = int64_t{1} << 47; }, "strides reach"},
    {"rank_mismatch", [](fb::PlanT& p) { p.arguments[0]->meta->strides.pop_back(); }, "sizes and"},
    {"unknown_dtype", [](fb::PlanT& p) { p.arguments[0]->meta->dtype = "f31"; }, "unknown dtype 'f31'"},
    {"unknown_target", [](fb::PlanT& p) { p.target = "tpu"; }, "unknown target 'tpu'"},
    {"data_on_parameter", [](fb::PlanT& p) { p.arguments[0]->data.resize(4); }, "carries data"},
    {"writeback_to_parameter",
     [](fb::PlanT& p) {
       p.writebacks.push_back(std::make_unique<fb::WritebackT>());
       p.writebacks[0]->reg = p.outputs[0]->reg;
     },
     "no buffer or input"},
    {"layouts_and_results_differ",
     [](fb::PlanT& p) {
       for (int i = 0; i < 2; ++i) p.forward[0]->first_layout.push_back(test::PlanMaker::meta({2}));
     },
     "2 layouts for 1 results"},
    {"guard_twice",
     [](fb::PlanT& p) {
       for (int i = 0; i < 2; ++i) {
         p.guards.push_back(std::make_unique<fb::GuardT>());
         p.guards.back()->name = "threads";
       }
     },
     "stands twice"},
};

INSTANTIATE_TEST_SUITE_P(All, Damaged, testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Reader, RandomDamageNeverCrashes) {
  Mlp mlp(true);
  const auto bytes = write_plan(mlp.m.plan);
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto copy = bytes;
    const int flips = 1 + random() % 8;
    for (int f = 0; f < flips; ++f) copy[random() % copy.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) copy.resize(random() % copy.size());
    try {
      read_plan(copy.data(), copy.size());
    } catch (const PlanError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

// One forward instruction, referred to N times, whose location of 64 KiB of ints each reference would unpack again.
TEST(Reader, SharedTablesDoNotAmplify) {
  flatbuffers::FlatBufferBuilder b;
  const std::vector<int64_t> many(8192, 1);
  const auto ints = b.CreateVector(many);
  const auto arg = fb::CreateArg(b, fb::ArgKind::Ints, 0, 0, 0, 0, ints);
  const std::vector<flatbuffers::Offset<fb::Arg>> args(4096, arg);
  const auto instr = fb::CreateInstr(b, 0, b.CreateVector(args));
  const std::vector<flatbuffers::Offset<fb::Instr>> list(4096, instr);
  const auto forward = b.CreateVector(list);
  const auto target = b.CreateString("cpu");
  fb::PlanBuilder plan(b);
  plan.add_target(target);
  plan.add_forward(forward);
  fb::FinishPlanBuffer(b, plan.Finish());
  EXPECT_THROW(read_plan(b.GetBufferPointer(), b.GetSize()), PlanError);
}

}  // namespace
}  // namespace memscale

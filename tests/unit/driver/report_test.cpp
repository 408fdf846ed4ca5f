// Reports: JSON keys and numbers, text, --explain, and that the archive's form has no times in it.
#include "compiler/report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace memscale::report {
namespace {

using nlohmann::json;

Report sample() {
  Report r;
  r.producer = "memscalec 0.1.0";
  r.model = "model.pt";
  r.format = "torchscript";
  r.parameters = 2;
  r.parameter_bytes = 3 << 20;
  r.forward_calls = 10;
  r.backward_calls = 20;
  r.target = "cpu";
  r.device = "cpu";
  r.budget = "0.5x";
  r.budget_bytes = 50 << 20;
  r.optimizer = "adamw";
  r.optimizer_state_bytes = 6 << 20;
  r.eager_peak_bytes = 100 << 20;
  r.save_all_peak_bytes = 90 << 20;
  r.planned_peak_bytes = 50 << 20;
  r.lower_bound_bytes = 20 << 20;
  r.base_time_us = 1000;
  r.planned_time_us = 1250.00049;
  r.policy = "price";
  r.baselines = {{"every-sqrt-n", 70 << 20, 1400}};
  r.decisions = {{"recompute",
                  "h.0.mlp / aten::gelu #7",
                  "aten::gelu",
                  7,
                  8 << 20,
                  1,
                  12.5,
                  "not held from call 8 until call 30",
                  {"model.py", 12, "h.0.mlp"}},
                 {"keep", "aten::mm #9", "aten::mm", 9, 4 << 20, 0, 0, "held", {}},
                 {"inplace", "h.1 / aten::relu #11", "aten::relu", 11, 1 << 20, 0, 0, "takes over", {"model.py", 14, "h.1"}}};
  r.peak_op = "h.0.mlp / aten::mm #25";
  r.live_at_peak = {{"h.0 / aten::gelu #7", "activation", 8 << 20, {}}};
  r.unknown_workspaces = {{"aten::weird", 3}};
  r.error_percent = 2.5;
  r.warnings = {"a warning"};
  r.phases = {{"planning", 0.25}, {"writing", 0.5}};
  return r;
}

TEST(Report, JsonNumbers) {
  const json root = json::parse(to_json(sample(), true));
  EXPECT_EQ(root["schema"], "memscale.report/1");
  EXPECT_EQ(root["peaks"]["planned_bytes"], 50 << 20);
  EXPECT_EQ(root["peaks"]["eager_bytes"], 100 << 20);
  EXPECT_DOUBLE_EQ(root["time"]["planned_us"], 1250.0);  // to the nanosecond
  EXPECT_EQ(root["counts"]["recompute"], json({{"added_time_us", 12.5}, {"bytes", 8 << 20}, {"count", 1}}));
  EXPECT_EQ(root["counts"]["keep"]["count"], 1);
  ASSERT_EQ(root["decisions"].size(), 3u);
  EXPECT_EQ(root["decisions"][0]["module"], "h.0.mlp");
  EXPECT_EQ(root["decisions"][0]["line"], 12);
  EXPECT_FALSE(root["decisions"][1].contains("file"));
  EXPECT_EQ(root["unknown_workspaces"][0]["op"], "aten::weird");
  EXPECT_DOUBLE_EQ(root["compile_time_s"]["planning"], 0.25);
}

TEST(Report, TheArchivesFormHasNoTimes) {
  Report a = sample(), b = sample();
  b.phases = {{"planning", 99}};
  EXPECT_EQ(to_json(a, false), to_json(b, false));
  EXPECT_FALSE(json::parse(to_json(a, false)).contains("compile_time_s"));
}

TEST(Report, NamesThatAreNotUtf8StillGiveJson) {
  Report r = sample();
  r.decisions[0].tensor = "\xff\xfe";
  EXPECT_NO_THROW({ EXPECT_EQ(json::parse(to_json(r, false))["decisions"].size(), 3u); });
}

TEST(Report, TextShowsPeaksBaselinesDecisions) {
  const std::string text = to_text(sample());
  for (const char* part : {"50.0 MiB", "0.500x", "every-sqrt-n", "1.400x", "h.0.mlp / aten::gelu #7  at model.py:12 (h.0.mlp)",
                           "aten::weird (3)", "within 2.5 %", "warning: a warning", "compiled in 0.75 s"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) EXPECT_LE(end - begin, 160u);
}

TEST(Report, NoDecisionsAreSaid) {
  Report r = sample();
  r.decisions.clear();
  r.applied = false;
  EXPECT_NE(to_text(r).find("none: every tensor is held until its last use"), std::string::npos);
  EXPECT_NE(to_text(r).find("nothing to decide"), std::string::npos);
  EXPECT_NE(explain(r, "").find("no decisions"), std::string::npos);
}

TEST(Report, ExplainSelects) {
  const Report r = sample();
  EXPECT_NE(explain(r, "").find("aten::mm #9"), std::string::npos);
  const std::string one = explain(r, "gelu");
  EXPECT_NE(one.find("not held from call 8 until call 30"), std::string::npos);
  EXPECT_EQ(one.find("aten::mm"), std::string::npos);
  EXPECT_NE(explain(r, "h.1").find("takes over"), std::string::npos);  // by module path
  EXPECT_NE(explain(r, "nothing").find("no decision about 'nothing'"), std::string::npos);
}

}  // namespace
}  // namespace memscale::report

// Edits of a run sequence: memory and time stay equal to a fresh simulation, and undo restores everything.
#include "compiler/planner/sequence.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/planner/generate.h"
#include "compiler/simulate/simulate.h"
#include "small_problems.h"

namespace memscale::planner {
namespace {

int64_t simulated_peak(const Problem& p, const std::vector<int32_t>& ops) {
  std::vector<planner::Run> runs;
  for (int32_t op : ops) runs.push_back({op, -1});
  simulate::assign_inplace(p, runs);
  const auto report = simulate::simulate(p, runs);
  EXPECT_TRUE(report);
  return report ? report->peak_bytes : -1;
}

TEST(MemoryTree, AgreesWithAnArray) {
  std::mt19937_64 random(5);
  for (int size : {1, 2, 3, 17, 64, 100}) {
    std::vector<int64_t> array(size);
    for (auto& v : array) v = static_cast<int64_t>(random() % 1000);
    MemoryTree tree(array);
    for (int step = 0; step < 500; ++step) {
      auto first = static_cast<int64_t>(random() % size), last = static_cast<int64_t>(random() % size);
      if (first > last) std::swap(first, last);
      const int64_t bytes = static_cast<int64_t>(random() % 2001) - 1000;
      tree.add(first, last, bytes);
      for (int64_t i = first; i <= last; ++i) array[i] += bytes;
      ASSERT_EQ(tree.max(), *std::max_element(array.begin(), array.end()));
      auto a = static_cast<int64_t>(random() % size), b = static_cast<int64_t>(random() % size);
      if (a > b) std::swap(a, b);
      ASSERT_EQ(tree.max(a, b), *std::max_element(array.begin() + a, array.begin() + b + 1));
    }
  }
}

TEST(Sequence, UnreadRerunsGoAtOnce) {
  const Problem p = testing::chain(3, 100);
  const Tables tables(p);
  // The second op1 is read by nobody, and then neither is the second op0.
  const Sequence sequence(tables, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 0, 1, 6});
  EXPECT_EQ(sequence.ops(), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(sequence.time_us(), 7);
}

TEST(Sequence, GivesBackWhatFits) {
  // a1 (op0) and a2 (op1) are both made anew; eager's peak is 500. At 400 one of them can stay, at 500 both, at 300 none may
  // change.
  const Problem p = testing::chain(3, 100);
  const Tables tables(p);
  const std::vector<int32_t> ops{0, 1, 2, 3, 0, 1, 4, 0, 5, 6};
  for (const auto& [budget, time] : {std::pair<int64_t, double>{500, 7}, {400, 8}}) {
    Sequence sequence(tables, ops);
    sequence.give_back(budget, GiveBackOrder::kTime);
    EXPECT_EQ(sequence.time_us(), time) << budget;
    EXPECT_LE(sequence.peak_bytes(), budget);
    EXPECT_EQ(simulated_peak(p, sequence.ops()), sequence.peak_bytes());
  }
  Sequence tight(tables, ops);
  const int64_t before = tight.peak_bytes();
  tight.give_back(before - 1, GiveBackOrder::kTime);
  EXPECT_EQ(tight.peak_bytes(), before);
}

TEST(Sequence, StaysExactUnderRandomEdits) {
  std::mt19937_64 random(9);
  int shortened = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    GenerateOptions options;
    options.seed = seed;
    options.forward_ops = 15;
    options.fixed = 0;
    options.inplace = 0.6;
    const Problem p = generate(options);
    const Tables tables(p);
    std::vector<int32_t> ops, again;
    for (int32_t i = 0; i < static_cast<int32_t>(p.ops.size()); ++i) {
      ops.push_back(i);
      if (tables.rerunnable(i)) again.push_back(i);
      while (random() % 2 == 0 && !again.empty()) ops.push_back(again[random() % again.size()]);
    }
    const Sequence whole(tables, ops);
    ASSERT_EQ(simulated_peak(p, whole.ops()), whole.peak_bytes()) << seed;
    for (GiveBackOrder order : {GiveBackOrder::kTime, GiveBackOrder::kTimePerByteRun}) {
      Sequence sequence(tables, ops);
      const int64_t budget = whole.peak_bytes();
      sequence.give_back(budget, order);  // many trials are rolled back on the way
      EXPECT_LE(sequence.peak_bytes(), budget);
      EXPECT_EQ(simulated_peak(p, sequence.ops()), sequence.peak_bytes()) << seed;
      shortened += sequence.ops().size() < whole.ops().size();
    }
  }
  EXPECT_GT(shortened, 40);
}

}  // namespace
}  // namespace memscale::planner

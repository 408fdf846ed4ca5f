// Minimum cut between a source and a sink: Dinic's algorithm, integer capacities, explicit stacks, deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace memscale::planner {

class MinCut {
 public:
  static constexpr int64_t kUncuttable = int64_t{1} << 60;

  explicit MinCut(int32_t nodes) : first_(nodes, -1) {}

  void add_edge(int32_t from, int32_t to, int64_t capacity);
  /// Per node, whether it is on the source's side of the cut that lies nearest to the source. Uses the edges up: call it once.
  /// O(V^2 E) at worst, near linear on graphs of short layers.
  std::vector<char> source_side(int32_t source, int32_t sink);

 private:
  struct Edge {
    int32_t to, next;
    int64_t left;
  };

  bool find_levels(int32_t source, int32_t sink);
  void block(int32_t source, int32_t sink);

  std::vector<int32_t> first_, level_, at_, queue_, path_;
  std::vector<Edge> edges_;  // an edge and its reverse stand side by side
};

}  // namespace memscale::planner

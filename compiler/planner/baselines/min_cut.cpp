// See min_cut.h.
#include "compiler/planner/baselines/min_cut.h"

#include <algorithm>

namespace memscale::planner {

void MinCut::add_edge(int32_t from, int32_t to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int32_t>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int32_t>(edges_.size()) - 1;
}

bool MinCut::find_levels(int32_t source, int32_t sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (size_t i = 0; i < queue_.size(); ++i)
    for (int32_t e = first_[queue_[i]]; e >= 0; e = edges_[e].next)
      if (edges_[e].left > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue_[i]] + 1;
        queue_.push_back(edges_[e].to);
      }
  return level_[sink] >= 0;
}

void MinCut::block(int32_t source, int32_t sink) {
  at_ = first_;
  path_.clear();
  int32_t node = source;
  for (;;) {
    if (node == sink) {
      int64_t flow = kUncuttable;
      for (int32_t e : path_) flow = std::min(flow, edges_[e].left);
      size_t keep = path_.size();
      for (size_t k = path_.size(); k-- > 0;) {
        edges_[path_[k]].left -= flow;
        edges_[path_[k] ^ 1].left += flow;
        if (edges_[path_[k]].left == 0) keep = k;
      }
      path_.resize(keep);
      node = path_.empty() ? source : edges_[path_.back()].to;
      continue;
    }
    int32_t& e = at_[node];
    while (e >= 0 && (edges_[e].left == 0 || level_[edges_[e].to] != level_[node] + 1)) e = edges_[e].next;
    if (e >= 0) {
      path_.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path_.empty()) return;
    level_[node] = -1;
    path_.pop_back();
    node = path_.empty() ? source : edges_[path_.back()].to;
  }
}

std::vector<char> MinCut::source_side(int32_t source, int32_t sink) {
  while (find_levels(source, sink)) block(source, sink);
  std::vector<char> side(first_.size());
  for (size_t v = 0; v < side.size(); ++v) side[v] = level_[v] >= 0;
  return side;
}

}  // namespace memscale::planner

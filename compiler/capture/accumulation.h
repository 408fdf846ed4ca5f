// Which calls of backward sum up the gradients that reach one leaf from its several uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/capture/graph.h"

namespace torch::autograd {
struct Node;
}

namespace memscale::capture {

/// Counts the gradients that autograd's engine delivers to each leaf while it lives.
class ArrivalCounter {
 public:
  /// Hooks every node of the history of `roots` that delivers to one of `leaves`.
  ArrivalCounter(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& leaves);
  /// How many defined gradients reached leaf number i.
  int64_t of(size_t leaf) const { return (*counts_)[leaf]; }

 private:
  std::shared_ptr<std::vector<int64_t>> counts_;
};

/// Marks the calls that add `arrivals[i]` gradients to `graph.gradients[i]`: autograd adds them itself when the plan runs, one by one, so that
/// the sum is eager's also where a leaf has uses outside the plan or in a second call of it.
void mark_accumulations(Graph& graph, const std::vector<int64_t>& arrivals);

}  // namespace memscale::capture

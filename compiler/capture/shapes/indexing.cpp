// Embeddings and selections by index.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

void embedding(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  std::vector<int64_t> sizes = a.tensor(1).sizes().vec();
  sizes.push_back(a.tensor(0).size(1));
  a.give({meta(sizes, a.tensor(0))});
}

void embedding_dense_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor gradient = a.tensor(0);
  a.give({meta({a[2].toInt(), gradient.size(-1)}, gradient)});
}

void index_select(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor self = a.tensor(0);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(a[1].toInt(), self.dim())] = a.tensor(2).numel();
  a.give({meta(sizes, self)});
}

void take(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  a.give({meta(a.tensor(1).sizes(), a.tensor(0))});
}

}  // namespace

void add_indexing(Table& cpu, Table& cuda) {
  for (Table* table : {&cpu, &cuda}) {
    (*table)["aten::embedding"] = embedding;
    (*table)["aten::embedding_dense_backward"] = embedding_dense_backward;
    (*table)["aten::index_select"] = index_select;
    (*table)["aten::take"] = take;
  }
}

}  // namespace memscale::shapes

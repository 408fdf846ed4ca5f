// oneDNN's recurrent layer. The size of its workspace is oneDNN's own affair: the forward kernel is run once on zeros to learn it.
#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

void mkldnn_rnn_layer(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  Stack real;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    if (a[i].isTensor() && a[i].toTensor().defined())
      real.emplace_back(at::zeros(a[i].toTensor().sizes(), a[i].toTensor().options().device(c10::kCPU)));
    else
      real.push_back(a[i]);
  }
  op.callBoxed(&real);
  std::vector<c10::IValue> results;
  for (const c10::IValue& result : real) {
    const at::Tensor& tensor = result.toTensor();
    results.emplace_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta)));
  }
  a.give(std::move(results));
}

void mkldnn_rnn_layer_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight_input = a.tensor(1), weight_hidden = a.tensor(2), bias = a.tensor(3), hidden = a.tensor(5), cell = a.tensor(6);
  a.give({meta(input.sizes(), input), meta(weight_input.sizes(), weight_input), meta(weight_hidden.sizes(), weight_hidden), meta(bias.sizes(), bias),
          meta(bias.sizes(), bias), meta(hidden.sizes(), hidden), meta(cell.sizes(), cell)});
}

}  // namespace

void add_recurrent(Table& cpu, Table&) {
  cpu["aten::mkldnn_rnn_layer"] = mkldnn_rnn_layer;
  cpu["aten::mkldnn_rnn_layer_backward"] = mkldnn_rnn_layer_backward;
}

}  // namespace memscale::shapes

// Recurrent layers and cells. The size of oneDNN's workspace is its own affair: the forward kernel is run once on zeros to learn it. cuDNN's
// reserve is known to the device alone: its layers have no entry.
#include <ATen/ops/zeros.h>

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

/// input, weights of input and hidden, biases, hx, cx, ...: the gradients are float32 whatever the input is, and there are two of the bias even
/// where the layer has none.
void mkldnn_rnn_layer_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight_input = a.tensor(1), weight_hidden = a.tensor(2), hidden = a.tensor(5), cell = a.tensor(6);
  const auto dense = [](at::IntArrayRef sizes) { return meta(sizes, c10::kFloat); };
  const Sizes bias = {weight_input.size(0)};
  a.give({dense(input.sizes()), dense(weight_input.sizes()), dense(weight_hidden.sizes()), dense(bias), dense(bias), dense(hidden.sizes()),
          dense(cell.sizes())});
}

// The fused cells of CUDA: gates of the input and of the hidden state, (batch, gates · hidden).
void lstm_cell(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor gates = a.tensor(0), cell = a.tensor(2);
  a.give({meta(cell.sizes(), cell), meta(cell.sizes(), cell), meta(gates.sizes(), gates)});
}

/// grad_hy, grad_cy, cx, cy, workspace, has_bias
void lstm_cell_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor cell = a.tensor(2), workspace = a.tensor(4);
  a.give({meta(workspace.sizes(), workspace), meta(cell.sizes(), cell), if_wanted(a[5].toBool(), meta({workspace.size(1)}, workspace))});
}

void gru_cell(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor hidden = a.tensor(2);
  a.give({meta(hidden.sizes(), hidden), meta({hidden.size(0), hidden.size(1) * 5}, hidden)});
}

/// grad_hy, workspace, has_bias
void gru_cell_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor gradient = a.tensor(0), workspace = a.tensor(1);
  const int64_t hidden = workspace.size(1) / 5;
  const auto gates = [&] { return meta({workspace.size(0), 3 * hidden}, workspace); };
  const bool bias = a[2].toBool();
  a.give({gates(), gates(), meta(gradient.sizes(), gradient), if_wanted(bias, meta({3 * hidden}, workspace)), if_wanted(bias, meta({3 * hidden}, workspace))});
}

void yes(const c10::OperatorHandle& op, Stack& stack) { Arguments(op, stack).give({true}); }

}  // namespace

void add_recurrent(Tables& tables) {
  tables.cpu["aten::mkldnn_rnn_layer"] = mkldnn_rnn_layer;
  tables.cpu["aten::mkldnn_rnn_layer_backward"] = mkldnn_rnn_layer_backward;
  tables.cuda["aten::_use_cudnn_rnn_flatten_weight"] = yes;
  tables.cuda["aten::_thnn_fused_lstm_cell"] = lstm_cell;
  tables.cuda["aten::_thnn_fused_lstm_cell_backward_impl"] = lstm_cell_backward;
  tables.cuda["aten::_thnn_fused_gru_cell"] = gru_cell;
  tables.cuda["aten::_thnn_fused_gru_cell_backward"] = gru_cell_backward;
}

}  // namespace memscale::shapes

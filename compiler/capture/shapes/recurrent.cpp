// Recurrent layers and cells. The size of oneDNN's workspace is its own affair: the forward kernel is run once on zeros to learn
// it. That of cuDNN's reserve follows a rule, found by recording on an H200.
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

/// input, weights of input and hidden, biases, hx, cx, ...: the gradients are float32 whatever the input is, and there are two of
/// the bias even where the layer has none.
void mkldnn_rnn_layer_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), weight_input = a.tensor(1), weight_hidden = a.tensor(2), hidden = a.tensor(5),
                   cell = a.tensor(6);
  const auto dense = [](at::IntArrayRef sizes) { return meta(sizes, c10::kFloat); };
  const Sizes bias = {weight_input.size(0)};
  a.give({dense(input.sizes()), dense(weight_input.sizes()), dense(weight_hidden.sizes()), dense(bias), dense(bias),
          dense(hidden.sizes()), dense(cell.sizes())});
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
  a.give({meta(workspace.sizes(), workspace), meta(cell.sizes(), cell),
          if_wanted(a[5].toBool(), meta({workspace.size(1)}, workspace))});
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
  a.give({gates(), gates(), meta(gradient.sizes(), gradient), if_wanted(bias, meta({3 * hidden}, workspace)),
          if_wanted(bias, meta({3 * hidden}, workspace))});
}

// cuDNN's layers.
struct CudnnRnn {
  enum Mode : int64_t { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };

  /// `settings` is the position of the mode; hx and cx stand before it.
  CudnnRnn(const Arguments& a, size_t settings, const at::Tensor& input)
      : input(input),
        mode(a[settings].toInt()),
        hidden_size(a[settings + 1].toInt()),
        layers(a[settings + 3].toInt()),
        batch_first(a[settings + 4].toBool()),
        dropout(a[settings + 5].toDouble()),
        training(a[settings + 6].toBool()),
        directions(a[settings + 7].toBool() ? 2 : 1) {
    TORCH_CHECK_NOT_IMPLEMENTED(a.ints(settings + 8).empty(),
                                "cuDNN's recurrent layers have no shape function for packed sequences; pass padded batches");
    TORCH_CHECK_NOT_IMPLEMENTED(a[settings + 2].toInt() == 0,
                                "cuDNN's recurrent layers have no shape function for projections (proj_size)");
    time = input.size(batch_first ? 1 : 0);
    batch = input.size(batch_first ? 0 : 1);
  }
  int64_t gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }
  int64_t inputs(int64_t layer) const { return layer == 0 ? input.size(2) : directions * hidden_size; }
  /// A tensor that the kernel makes with time first.
  at::Tensor sequence(int64_t features) const {
    return batch_first ? meta({time, batch, features}, input).transpose(0, 1) : meta({time, batch, features}, input);
  }
  /// Two biases are counted whether the layer has them or not.
  int64_t weights() const {
    int64_t count = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      count += directions * gates() * hidden_size * (inputs(layer) + hidden_size + 2);
    return count;
  }
  /// A header, the gates and (LSTM) cells of all layers, what goes from layer to layer, and one bit an element of each dropout
  /// mask.
  int64_t reserve_bytes() const {
    if (!training) return 0;
    const auto rounded = [](int64_t bytes) { return (bytes + 31) / 32 * 32; };
    const int64_t state = time * batch * hidden_size * static_cast<int64_t>(input.element_size());
    const int64_t kept = mode == kLstm ? 4 : mode == kGru ? 6 : 1;
    int64_t bytes = 256 + rounded(layers * directions * kept * state) + rounded((layers - 1) * directions * state);
    if (mode == kLstm) bytes += rounded(layers * directions * state);
    if (dropout > 0) bytes += (layers - 1) * directions * rounded((time * batch * directions * hidden_size + 7) / 8);
    return bytes;
  }

  at::Tensor input;
  int64_t mode, hidden_size, layers;
  bool batch_first;
  double dropout;
  bool training;
  int64_t directions, time = 0, batch = 0;
};

/// input, weights, weight_stride0, weight_buf, hx, cx, mode, ...
void cudnn_rnn(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor hidden = a.tensor(4);
  const CudnnRnn rnn(a, 6, a.tensor(0));
  a.give({rnn.sequence(rnn.directions * rnn.hidden_size), meta(hidden.sizes(), hidden),
          a.tensor(5).defined() ? meta(hidden.sizes(), hidden) : meta({0}, hidden), meta({rnn.reserve_bytes()}, c10::kByte),
          a.tensor(3).defined() ? a.tensor(3) : meta({rnn.weights()}, rnn.input)});
}

/// Gradients of the weights are views of one buffer: all matrices, then all biases.
void cudnn_rnn_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor hidden = a.tensor(4), cell = a.tensor(5);
  const CudnnRnn rnn(a, 10, a.tensor(0));
  const auto weights = a[1].toTensorVector();
  c10::List<at::Tensor> gradients;
  if (a.flag(21, 3)) {
    const at::Tensor buffer = meta({rnn.weights()}, rnn.input);
    int64_t matrix = 0, bias = 0;
    for (const at::Tensor& weight : weights)
      if (weight.dim() == 2) bias += weight.numel();
    for (const at::Tensor& weight : weights) {
      int64_t& offset = weight.dim() == 2 ? matrix : bias;
      gradients.push_back(buffer.narrow(0, offset, weight.numel()).view(weight.sizes()));
      offset += weight.numel();
    }
  }
  const bool any = a.flag(21, 0) || a.flag(21, 1) || a.flag(21, 2);
  a.give({if_wanted(any, rnn.sequence(rnn.input.size(2))), if_wanted(any, meta(hidden.sizes(), hidden)),
          if_wanted(any && cell.defined(), meta(hidden.sizes(), hidden)), gradients});
}

/// weights, weight_stride0, input_size, mode, hidden_size, proj_size, num_layers, batch_first, bidirectional
void cudnn_flatten_weight(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(a[5].toInt() == 0, "cuDNN's recurrent layers have no shape function for projections (proj_size)");
  const int64_t gates = a[3].toInt() == CudnnRnn::kLstm ? 4 : a[3].toInt() == CudnnRnn::kGru ? 3 : 1;
  const int64_t hidden = a[4].toInt(), directions = a[8].toBool() ? 2 : 1;
  int64_t count = 0;
  for (int64_t layer = 0; layer < a[6].toInt(); ++layer)
    count += directions * gates * hidden * ((layer == 0 ? a[2].toInt() : directions * hidden) + hidden + 2);
  a.give({meta({count}, a[0].toTensorVector().at(0))});
}

void yes(const c10::OperatorHandle& op, Stack& stack) { Arguments(op, stack).give({true}); }

}  // namespace

void add_recurrent(Tables& tables) {
  tables.cpu["aten::mkldnn_rnn_layer"] = mkldnn_rnn_layer;
  tables.cpu["aten::mkldnn_rnn_layer_backward"] = mkldnn_rnn_layer_backward;
  tables.cuda["aten::_cudnn_rnn"] = cudnn_rnn;
  tables.cuda["aten::_cudnn_rnn_backward"] = cudnn_rnn_backward;
  tables.cuda["aten::_cudnn_rnn_flatten_weight"] = cudnn_flatten_weight;
  tables.cuda["aten::_use_cudnn_rnn_flatten_weight"] = yes;
  tables.cuda["aten::_thnn_fused_lstm_cell"] = lstm_cell;
  tables.cuda["aten::_thnn_fused_lstm_cell_backward_impl"] = lstm_cell_backward;
  tables.cuda["aten::_thnn_fused_gru_cell"] = gru_cell;
  tables.cuda["aten::_thnn_fused_gru_cell_backward"] = gru_cell_backward;
}

}  // namespace memscale::shapes

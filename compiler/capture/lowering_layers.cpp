// Dropout, batch normalisation and recurrent layers: the kernels that the target's own dispatch would call.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "compiler/capture/lowering_rules.h"
#include "compiler/capture/recorder.h"

namespace memscale::capture {
namespace {

const c10::IValue* arguments_of(const torch::jit::Stack& stack, const c10::FunctionSchema& schema) {
  return &stack[stack.size() - schema.arguments().size()];
}

at::Tensor tensor_or_undefined(const c10::IValue& value) { return value.isNone() ? at::Tensor() : value.toTensor(); }

}  // namespace

/// A trace holds _convolution with the cuDNN switches of the process that made it. Where they are the defaults the call is the
/// one that eager makes, under the switches of the process that trains (a guard).
bool lower_convolution(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  if (!schema.overload_name().empty()) return false;
  const auto* a = arguments_of(stack, schema);
  const bool benchmark = a[9].toBool(), deterministic = a[10].toBool(), cudnn_enabled = a[11].toBool(),
             allow_tf32 = a[12].toBool();
  if (benchmark || deterministic || !cudnn_enabled || !allow_tf32) return false;
  at::Tensor result = at::convolution(a[0].toTensor(), a[1].toTensor(), a[2].toOptional<at::Tensor>(), a[3].toIntVector(),
                                      a[4].toIntVector(), a[5].toIntVector(), a[6].toBool(), a[7].toIntVector(), a[8].toInt());
  torch::jit::drop(stack, schema.arguments().size());
  stack.emplace_back(std::move(result));
  return true;
}

/// bernoulli_ fills dense memory in the order of addresses; its functional form, which capture would record, makes a contiguous
/// tensor and fills that. Seen through the permutation that makes it contiguous, the tensor gets the same numbers either way.
bool lower_bernoulli_in_place(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  if (schema.overload_name() != "float") return false;
  const auto* arguments = arguments_of(stack, schema);
  const at::Tensor self = arguments[0].toTensor();
  if (self.is_contiguous() || !self.is_non_overlapping_and_dense()) return false;
  std::vector<int64_t> order(self.dim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  const at::Tensor in_memory_order = self.permute(order);
  if (!in_memory_order.is_contiguous()) return false;
  in_memory_order.bernoulli_(arguments[1].toDouble(), arguments[2].toOptional<at::Generator>());
  torch::jit::drop(stack, schema.arguments().size());
  stack.emplace_back(self);
  return true;
}

/// normal_ fills contiguous memory by other numbers than scattered memory, and a recorded call has contiguous results.
bool refuse_scattered_normal(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  const at::Tensor self = arguments_of(stack, schema)[0].toTensor();
  if (self.is_contiguous() || self.numel() < 16) return false;
  throw CaptureFault(Exit::kUnsupported,
                     "normal_ on a tensor that is not contiguous draws other numbers than its recorded form would",
                     "draw into a contiguous tensor and copy");
}

bool refuse_differentiated_product(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  if (!at::GradMode::is_enabled() || !arguments_of(stack, schema)[0].toTensor().requires_grad()) return false;
  throw CaptureFault(Exit::kUnsupported, schema.name() + ": its derivative depends on which elements are zero",
                     "compute the product as exp of a sum of logarithms, or as a chain of multiplications");
}

bool refuse_sparse_gradient(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  const auto position = schema.argumentIndexWithName("sparse");
  if (!position || !arguments_of(stack, schema)[*position].toBool()) return false;
  throw CaptureFault(Exit::kUnsupported, schema.name() + " with sparse=True has a sparse gradient, which is not supported",
                     "build the layer with sparse=False");
}

bool lower_dropout_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  const auto* arguments = arguments_of(stack, schema);
  const at::Tensor input = arguments[0].toTensor();
  const double p = arguments[1].toDouble();
  const bool train = arguments[2].toBool();
  if (!train || p <= 0 || p >= 1 || input.numel() == 0) return false;
  at::Tensor result = std::get<0>(at::native_dropout(input, p, train));
  torch::jit::drop(stack, schema.arguments().size());
  stack.emplace_back(std::move(result));
  return true;
}

/// cuDNN takes float and half inputs whose parameters are float; bf16 and parameters in half go to ATen's own kernel, as do 1-d
/// and 2-d inputs that are not 4-d or 5-d images (measured on an H200, torch 2.11).
bool lower_batch_norm_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context) {
  const auto* arguments = arguments_of(stack, schema);
  const at::Tensor input = arguments[0].toTensor();
  const at::Tensor weight = tensor_or_undefined(arguments[1]), bias = tensor_or_undefined(arguments[2]);
  const at::Tensor running_mean = tensor_or_undefined(arguments[3]), running_var = tensor_or_undefined(arguments[4]);
  const bool training = arguments[5].toBool();
  const double momentum = arguments[6].toDouble(), eps = arguments[7].toDouble();
  // torch.export writes False on any machine; eager asks the process, whose setting is a guard of the plan.
  const bool cudnn_enabled = at::globalContext().userEnabledCuDNN();
  if (cudnn_enabled != arguments[8].toBool())
    context.warnings.insert("the archive holds batch_norm(cudnn_enabled=" + std::string(cudnn_enabled ? "False" : "True") +
                            "); the plan follows torch.backends.cudnn.enabled, as eager does");
  const bool both = running_mean.defined() && running_var.defined();
  const bool neither = !running_mean.defined() && !running_var.defined();
  const at::ScalarType dtype = input.scalar_type();
  // ATen leaves very large batches to its own kernel: cuDNN's per-activation and spatial modes stop at these sizes.
  const bool size_fits =
      (input.dim() == 2 && input.size(0) <= 131070 && training) || (input.dim() == 2 && input.size(0) <= 262136 && !training) ||
      (input.dim() >= 3 && input.size(0) <= 880801 && training) || (input.dim() >= 3 && input.size(0) <= 65535 && !training);
  const bool cudnn = cudnn_enabled && (dtype == at::kFloat || dtype == at::kHalf) && weight.defined() && bias.defined() &&
                     weight.scalar_type() == at::kFloat && (both || (neither && training)) && input.dim() >= 3 && size_fits &&
                     eps >= 1e-5 && input.numel() > 0;
  at::Tensor output, save_mean, save_var, reserve;
  if (cudnn) {
    const at::Tensor contiguous = input.contiguous(input.suggest_memory_format());
    std::tie(output, save_mean, save_var, reserve) = at::cudnn_batch_norm(
        contiguous, weight.contiguous(), bias.contiguous(), running_mean.defined() ? running_mean.contiguous() : running_mean,
        running_var.defined() ? running_var.contiguous() : running_var, training, momentum, eps);
  } else {
    reserve = at::empty({0}, input.options().dtype(at::kByte));
    std::tie(output, save_mean, save_var) =
        at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  }
  torch::jit::drop(stack, schema.arguments().size());
  torch::jit::push(stack, output, save_mean, save_var, reserve, static_cast<int64_t>(cudnn ? 1 : 0));
  return true;
}

/// oneDNN's layer kernel runs one direction of one layer at a time.
bool lower_lstm_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext&) {
  if (schema.overload_name() != "input") return false;  // packed sequences go to ATen's own cells
  const auto* arguments = arguments_of(stack, schema);
  const at::Tensor input = arguments[0].toTensor();
  const std::vector<at::Tensor> hidden = arguments[1].toTensorVector(), weights = arguments[2].toTensorVector();
  const bool has_biases = arguments[3].toBool();
  const int64_t layers = arguments[4].toInt();
  const double dropout_p = arguments[5].toDouble();
  const bool train = arguments[6].toBool(), bidirectional = arguments[7].toBool(), batch_first = arguments[8].toBool();
  const bool projected = hidden.at(0).size(2) != hidden.at(1).size(2);
  if (!at::globalContext().userEnabledMkldnn() || input.scalar_type() != at::kFloat || input.numel() == 0 || projected)
    return false;

  constexpr int64_t kLstmMode = 2;
  const int64_t directions = bidirectional ? 2 : 1, tensors_per_cell = has_biases ? 4 : 2;
  at::Tensor layer_input = (batch_first ? input.transpose(0, 1) : input).contiguous();
  const at::Tensor hx = hidden[0].contiguous(), cx = hidden[1].contiguous();
  std::vector<at::Tensor> last_hidden, last_cell;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t cell = layer * directions + direction;
      const at::Tensor* w = &weights.at(cell * tensors_per_cell);
      const at::Tensor hidden_state = hx[cell], cell_state = cx[cell];
      const at::Tensor bias_in = has_biases ? w[2] : at::zeros(w[0].sizes(), w[0].options());
      const at::Tensor bias_hidden = has_biases ? w[3] : at::zeros(w[1].sizes(), w[1].options());
      auto [output, hy, cy, workspace] =
          at::mkldnn_rnn_layer(layer_input, w[0], w[1], bias_in, bias_hidden, hidden_state, cell_state, /*reverse=*/direction > 0,
                               /*batch_sizes=*/{}, kLstmMode, hx.size(2), layers, has_biases, bidirectional, batch_first, train);
      outputs.push_back(output);
      last_hidden.push_back(hy);
      last_cell.push_back(cy);
    }
    layer_input = directions == 1 ? outputs[0] : at::cat(outputs, -1);
    if (dropout_p != 0 && train && layer + 1 < layers) layer_input = at::dropout(layer_input, dropout_p, true);
  }
  at::Tensor output = layer_input, hy = at::stack(last_hidden, 0), cy = at::stack(last_cell, 0);
  if (batch_first) output = output.transpose(0, 1);
  torch::jit::drop(stack, schema.arguments().size());
  torch::jit::push(stack, output, hy, cy);
  return true;
}

bool refuse_recurrent_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const LoweringContext& context) {
  if (schema.name() == "aten::lstm" && lower_lstm_cpu(stack, schema, context)) return true;
  throw CaptureFault(
      Exit::kUnsupported,
      schema.name() + " computes its gates in place on parts of one tensor, which a recorded form would round otherwise",
      "use an LSTM in float32 without proj_size and packed sequences, or write the cell out");
}

bool refuse_recurrent_cuda(torch::jit::Stack&, const c10::FunctionSchema& schema, const LoweringContext&) {
  throw CaptureFault(
      Exit::kUnsupported,
      schema.name() + " runs in cuDNN on a CUDA device, and the size of cuDNN's reserve is known to the device alone",
      "compile recurrent layers for --target cpu, or unroll the layer from cells (torch.nn.LSTMCell)");
}

}  // namespace memscale::capture

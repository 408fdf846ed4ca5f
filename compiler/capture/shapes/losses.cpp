// Losses, forward and backward. Argument positions follow the schemas.
#include <ATen/core/Reduction.h>

#include "compiler/capture/shapes/helpers.h"

namespace memscale::shapes {
namespace {

void binary_cross_entropy(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  // A reduced loss keeps the memory of all losses: the CPU kernel sums into the tensor that held them.
  a.give({a[3].toInt() == at::Reduction::None ? meta_like(input) : meta_within({}, input.numel(), input.scalar_type())});
}

void binary_cross_entropy_with_logits(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({a[4].toInt() == at::Reduction::None ? broadcast({input, a.tensor(1)}, input.scalar_type()) : meta({}, input)});
}

/// Arguments: input, target, reduction.
void pairwise(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({a[2].toInt() == at::Reduction::None ? broadcast({input, a.tensor(1)}, input.scalar_type()) : meta({}, input)});
}

/// Arguments: gradient, input, target, reduction. The gradient is made by zeros_like in contiguous order.
void pairwise_backward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor like = broadcast({a.tensor(0), a.tensor(1), a.tensor(2)}, a.tensor(1).scalar_type());
  a.give({meta(like.sizes(), like)});
}

/// Classes in the last dimension of a vector or matrix; one loss for each row.
at::Tensor rows(const at::Tensor& input) { return input.dim() < 2 ? meta({}, input) : meta({input.size(0)}, input); }

void multi_margin_loss(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  if (a[5].toInt() != at::Reduction::None)
    a.give({meta({}, input)});
  else
    a.give({input.dim() < 2 ? meta(a.tensor(1).sizes(), input) : rows(input)});
}

void multilabel_margin_loss_forward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({a[2].toInt() == at::Reduction::None ? rows(input) : meta({}, input), meta(a.tensor(1).sizes(), input)});
}

void nll_loss2d_forward(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  const Sizes losses = {input.size(0), input.size(2), input.size(3)};
  a.give({a[3].toInt() == at::Reduction::None ? meta(losses, input) : meta({}, input), meta({}, input)});
}

int64_t longest(const c10::IValue& lengths) {
  int64_t most = 0;
  for (const int64_t length : lengths.toIntVector()) most = std::max(most, length);
  return most;
}

/// Log probabilities are (time, batch, classes); the second result holds the alphas, 2·target + 1 states for each time step.
void ctc_loss(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0);
  a.give({meta({input.size(1)}, input), meta({input.size(1), input.size(0), 2 * longest(a[3]) + 1}, input)});
}

void use_other_ctc_loss(const c10::OperatorHandle& op, Stack& stack) { Arguments(op, stack).give({false}); }

/// cuDNN's loss takes targets on the host in one row, blank 0, and int32 lengths; everything else is ATen's.
void use_cudnn_ctc_loss(const c10::OperatorHandle& op, Stack& stack) {
  const Arguments a(op, stack);
  const at::Tensor input = a.tensor(0), targets = a.tensor(1);
  if (a[4].toInt() == 0 && targets.dim() == 1 && input.scalar_type() == c10::kFloat && targets.scalar_type() == c10::kInt)
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "ctc_loss by cuDNN: its choice depends on the contents of the lengths; pass int64 targets");
  a.give({false});
}

}  // namespace

void add_losses(Tables& tables) {
  tables.both("aten::binary_cross_entropy", binary_cross_entropy);
  tables.both("aten::binary_cross_entropy_backward", like<1>);
  tables.both("aten::binary_cross_entropy_with_logits", binary_cross_entropy_with_logits);
  tables.both("aten::huber_loss", pairwise);
  tables.both({"aten::mse_loss_backward", "aten::smooth_l1_loss_backward", "aten::huber_loss_backward"}, pairwise_backward);
  tables.both("aten::multi_margin_loss", multi_margin_loss);
  tables.both({"aten::multi_margin_loss_backward", "aten::multilabel_margin_loss_backward", "aten::nll_loss2d_backward"},
              dense<1>);
  tables.both("aten::multilabel_margin_loss_forward", multilabel_margin_loss_forward);
  tables.both("aten::nll_loss2d_forward", nll_loss2d_forward);
  tables.both("aten::_ctc_loss", ctc_loss);
  tables.both({"aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor"}, dense<1>);
  tables.cuda["aten::_use_cudnn_ctc_loss"] = tables.cuda["aten::_use_cudnn_ctc_loss.Tensor"] = use_cudnn_ctc_loss;
  tables.cuda["aten::_use_miopen_ctc_loss"] = tables.cuda["aten::_use_miopen_ctc_loss.Tensor"] = use_other_ctc_loss;
}

}  // namespace memscale::shapes

// The rules of target-aware lowering, by op. Each reads the arguments on top of the stack; it returns false to let ATen's own composite
// decomposition run, or replaces the arguments by the results and returns true.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "compiler/capture/capture.h"

namespace memscale::capture {

bool lower_attention_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);
bool lower_attention_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);
bool lower_lstm_cpu(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);
bool refuse_recurrent_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);
bool lower_dropout_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);
bool lower_batch_norm_cuda(torch::jit::Stack& stack, const c10::FunctionSchema& schema, const Target& target);

}  // namespace memscale::capture

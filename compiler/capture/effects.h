// What a call does beyond computing its results, where the schema does not say it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace memscale::capture {

/// True if the call advances the generator. An attention or dropout call whose probability is 0 draws nothing.
bool draws_random_numbers(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

/// Indices of arguments whose memory the call writes: those the schema declares and the running statistics of batch norms in
/// training.
std::vector<size_t> mutated_arguments(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

/// True if a result (a number or a shape) depends on tensor contents.
bool is_data_dependent(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

}  // namespace memscale::capture

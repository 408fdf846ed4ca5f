// Training steps of eight kinds of network, shaped like the traces on which Dynamic Tensor Rematerialization was measured
// (Kirisame et al. 2021, Figure 2): the same graphs of layers at like relative sizes, times from a roofline. Not those traces.
#pragma once

#include <array>
#include <string_view>

#include "compiler/planner/problem.h"

namespace memscale::planner {

inline constexpr std::array<std::string_view, 8> kNetworks = {"unet",     "resnet32", "transformer", "inceptionv4",
                                                              "densenet", "treelstm", "lstm",        "unroll_gan"};

/// `name` is one of kNetworks; any other gives a problem without ops. The same name gives the same problem everywhere.
Problem generate_network(std::string_view name);

}  // namespace memscale::planner

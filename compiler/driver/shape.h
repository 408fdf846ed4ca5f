// --shape: one forward input's sizes, dtype and whether it requires grad. Needs and destroys nothing.
#pragma once

#include <string>

#include "compiler/capture/capture.h"
#include "compiler/support/error.h"

namespace memscale::driver {

/// "ids=8x128:int64", "0=8x128", "x=4x4:bf16:grad", "t=():int64" (a scalar), "8x128:int64" (the next input). The dtype is float32
/// where none is given. Errors: kUsage.
Expected<capture::InputSpec> parse_shape(const std::string& text);

/// The form that parse_shape reads.
std::string print_shape(const capture::InputSpec& spec);

/// "f32" → "float32"; an unknown name comes back as it is.
std::string torch_dtype_name(const std::string& dtype);

}  // namespace memscale::driver

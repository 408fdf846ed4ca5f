// Collects what passes say, so that it can become an Error.
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/Diagnostics.h"

namespace memscale::driver {

/// While it lives, errors and warnings of the context land here and nowhere else; remarks are dropped.
class Diagnostics {
 public:
  explicit Diagnostics(mlir::MLIRContext& context);

  /// The errors so far, one a line with its source; notes follow their error. Forgets them.
  std::string take_errors();
  std::vector<std::string> take_warnings();

 private:
  std::vector<std::string> errors_, warnings_;
  mlir::ScopedDiagnosticHandler handler_;
};

}  // namespace memscale::driver

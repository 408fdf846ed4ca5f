// Collecting of diagnostics.
#include "compiler/driver/diagnostics.h"

#include "ir/Memscale.h"

namespace memscale::driver {
namespace {

std::string line(const mlir::Diagnostic& diagnostic) {
  const std::string where = ir::describeLocation(diagnostic.getLocation());
  return (where.empty() ? "" : where + ": ") + diagnostic.str();
}

}  // namespace

Diagnostics::Diagnostics(mlir::MLIRContext& context)
    : handler_(&context, [this](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning) {
          warnings_.push_back(line(diagnostic));
        } else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
          std::string text = line(diagnostic);
          for (mlir::Diagnostic& note : diagnostic.getNotes()) text += "\n  " + line(note);
          errors_.push_back(std::move(text));
        }
        return mlir::success();
      }) {}

std::string Diagnostics::take_errors() {
  std::string text;
  for (const std::string& error : errors_) text += (text.empty() ? "" : "\n  ") + error;
  errors_.clear();
  return text.empty() ? "a pass failed and said nothing" : text;
}

std::vector<std::string> Diagnostics::take_warnings() { return std::exchange(warnings_, {}); }

}  // namespace memscale::driver

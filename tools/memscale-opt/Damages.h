//===- Damages.h - Faults put into a scheduled step -------------*- C++ -*-===//
//
// Each damage makes a proven step wrong in one place, the way a faulty pass
// would. For memscale-test-mutations.
//
//===----------------------------------------------------------------------===//

#ifndef MEMSCALE_TOOLS_MEMSCALE_OPT_DAMAGES_H
#define MEMSCALE_TOOLS_MEMSCALE_OPT_DAMAGES_H

#include "ir/Memscale.h"

namespace memscale::tools {

/// Does damage number `site` to `step`; false once there are no more sites. Every site is harmful: damages that could leave the
/// values right are not sites.
struct Damage {
  const char *name;
  bool (*apply)(ir::StepOp step, unsigned site);
};

llvm::ArrayRef<Damage> damages();

} // namespace memscale::tools

#endif // MEMSCALE_TOOLS_MEMSCALE_OPT_DAMAGES_H

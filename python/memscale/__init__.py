"""memscale: the memory compiler for PyTorch training graphs, from Python.

    memscale.export(model, args, "model.pt2")                      # the training graph, for memscalec
    memscale.compile("model.pt2", "model.ms.pt", budget="0.5x")    # runs memscalec
    model = memscale.load("model.ms.pt")                           # an nn.Module with the original's parameters
    memscale.memory_stats(model)                                   # predicted and measured peak
"""

from ._compile import compile  # noqa: A004
from ._export import export
from ._library import compiler_path, load_runtime, runtime_path
from ._module import PlannedModule, load, memory_stats, report, track_allocations
from .errors import (
    ArchiveError,
    BudgetInfeasibleError,
    CompileError,
    ExportError,
    ExportWarning,
    FallBackWarning,
    InternalCompilerError,
    LibraryNotFoundError,
    MemscaleError,
    ModeError,
    StructureWarning,
    UnsafeInputError,
    UnsupportedInputError,
    UsageError,
    VerificationError,
)

__version__ = "0.1.0"

__all__ = [
    "ArchiveError",
    "BudgetInfeasibleError",
    "CompileError",
    "ExportError",
    "ExportWarning",
    "FallBackWarning",
    "InternalCompilerError",
    "LibraryNotFoundError",
    "MemscaleError",
    "ModeError",
    "PlannedModule",
    "StructureWarning",
    "UnsafeInputError",
    "UnsupportedInputError",
    "UsageError",
    "VerificationError",
    "compile",
    "compiler_path",
    "export",
    "load",
    "load_runtime",
    "memory_stats",
    "report",
    "runtime_path",
    "track_allocations",
]

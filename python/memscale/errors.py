"""Exceptions of the Python package. All derive from MemscaleError; those of the compiler carry memscalec's exit code."""

from __future__ import annotations


class MemscaleError(Exception):
    """Base of every error that memscale raises."""


class LibraryNotFoundError(MemscaleError, ImportError):
    """The runtime library or memscalec is nowhere to be found; the message lists the places that were looked at."""


class ArchiveError(MemscaleError, ValueError):
    """The file is no readable model.ms.pt: not an archive, without a plan, broken, or of another version."""


class ModeError(MemscaleError, RuntimeError):
    """The archive holds the graph of the other mode: a training graph was asked for evaluation, or the reverse."""


class ExportError(MemscaleError, RuntimeError):
    """The model could not be exported."""


class CompileError(MemscaleError, RuntimeError):
    """memscalec refused or failed. `exit_code` is its exit status, `command` what was run; the text is its own message."""

    exit_code = 1

    def __init__(self, message: str, *, exit_code: int | None = None, command: list[str] | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code
        self.command = command or []


class UsageError(CompileError):
    """Exit 2: an option, a shape, a target or a path is wrong."""

    exit_code = 2


class BudgetInfeasibleError(CompileError):
    """Exit 3: no plan fits the budget; the message names what alone exceeds it."""

    exit_code = 3


class UnsupportedInputError(CompileError):
    """Exit 4: the graph uses something that cannot be captured."""

    exit_code = 4


class VerificationError(CompileError):
    """Exit 5: a plan was found unsafe and was not written."""

    exit_code = 5


class UnsafeInputError(CompileError):
    """Exit 6: the archive is broken or hostile."""

    exit_code = 6


class InternalCompilerError(CompileError):
    """Exit 70 or a signal: a fault of memscalec itself."""

    exit_code = 70


class ExportWarning(UserWarning):
    """Something that the written archive does not carry."""


class FallBackWarning(UserWarning):
    """A planned module ran its original graph, without the plan's memory savings."""


class StructureWarning(UserWarning):
    """An output of a class that may not be imported came back as a dict."""


_BY_EXIT_CODE: dict[int, type[CompileError]] = {
    cls.exit_code: cls
    for cls in (CompileError, UsageError, BudgetInfeasibleError, UnsupportedInputError, VerificationError, UnsafeInputError,
                InternalCompilerError)
}


def compile_error(exit_code: int, message: str, command: list[str]) -> CompileError:
    """The exception that stands for memscalec's exit status."""
    return _BY_EXIT_CODE.get(exit_code, InternalCompilerError)(message, exit_code=exit_code, command=command)

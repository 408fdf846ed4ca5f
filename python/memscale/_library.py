"""Finds and loads libmemscale_runtime.so, and finds memscalec beside it.

Looked at, in this order: the folder in MEMSCALE_LIBRARY_DIR, the package's own folder, build/lib of the source tree that holds the
package.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import torch

from .errors import LibraryNotFoundError

_RUNTIME = "libmemscale_runtime.so"
_COMPILER = "memscalec"


def _folders() -> list[Path]:
    package = Path(__file__).resolve().parent
    folders = [package, package / "lib", package.parents[1] / "build" / "lib"]
    chosen = os.environ.get("MEMSCALE_LIBRARY_DIR")
    return [Path(chosen), *folders] if chosen else folders


def _not_found(what: str, looked_at: list[Path]) -> LibraryNotFoundError:
    places = "\n  ".join(map(str, looked_at))
    return LibraryNotFoundError(
        f"{what} was not found in\n  {places}\nBuild it (`make build`), or name the folder that holds {_RUNTIME} in MEMSCALE_LIBRARY_DIR."
    )


def runtime_path() -> Path:
    """The runtime library. Raises LibraryNotFoundError."""
    candidates = [folder / _RUNTIME for folder in _folders()]
    for path in candidates:
        if path.is_file():
            return path
    raise _not_found(_RUNTIME, candidates)


def compiler_path() -> Path:
    """The memscalec program that belongs to the library. Raises LibraryNotFoundError."""
    candidates = [place for folder in _folders() for place in (folder / _COMPILER, folder.parent / "bin" / _COMPILER)]
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise _not_found(_COMPILER, candidates)


@functools.lru_cache(maxsize=1)
def load_runtime() -> Path:
    """Loads the runtime into the process (once) and returns its path; `torch.ops.memscale` and the Plan class exist from then on."""
    path = runtime_path()
    torch.ops.load_library(str(path))
    return path

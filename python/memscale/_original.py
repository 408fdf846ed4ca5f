"""The original graph of an archive: what runs where the plan does not apply.

Needs the archive to be where it was loaded from, and the runtime library (TorchScript must know memscale.Plan).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from . import _structure
from .errors import ArchiveError

_METHOD = "_memscale_original"


class Original:
    """The method `_memscale_original` of the archive's ScriptModule, on parameters and buffers that are given to it."""

    def __init__(self, path: str) -> None:
        """Reads the archive with LibTorch's loader. Raises ArchiveError if it is gone or cannot be read."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=DeprecationWarning)
                self._module = torch.jit.load(path, map_location="cpu")
        except (RuntimeError, ValueError) as error:
            raise ArchiveError(
                f"the call does not fit the plan, and the original graph cannot be read from {path}: {error}. Keep the file while "
                "the module is in use."
            ) from error
        self._method = getattr(self._module, _METHOD, None)
        if self._method is None:
            raise ArchiveError(f"{path} holds no method {_METHOD}: it was not written by this version of memscalec")
        self._owners: dict[str, tuple[Any, str]] = {}
        self._bound: dict[str, Tensor] = {}
        schema = self._method.schema.arguments[1:]
        self._flat_inputs = len(schema) if all(isinstance(a.type, torch._C.TensorType) for a in schema) else None

    def bind(self, state: Mapping[str, Tensor]) -> None:
        """Makes the module use these very tensors, by qualified name."""
        for name, tensor in state.items():
            if self._bound.get(name) is tensor:
                continue
            if name not in self._owners:
                *path, leaf = name.split(".")
                owner = self._module
                for part in path:
                    owner = getattr(owner, part)
                self._owners[name] = (owner._c, leaf)
            owner, leaf = self._owners[name]
            owner.setattr(leaf, tensor)
            self._bound[name] = tensor

    def call(self, inputs: dict[str, Any], outputs: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the graph with the original's arguments; the result has the original's structure.

        Raises TypeError where the graph takes flat tensors and the arguments cannot be made that.
        """
        if self._flat_inputs is not None:
            try:
                flat = _structure.flatten_arguments(inputs, args, kwargs)
            except _structure.Mismatch as difference:
                raise TypeError(f"neither the plan nor the archive's graph fits this call: {difference}") from None
            args, kwargs = tuple(flat), {}
        # The profiling executor reorders gradient sums from the second call on; without it the numbers are eager's.
        with torch.jit.optimized_execution(False):
            result = self._method(*args, **kwargs)
        if isinstance(result, Tensor):
            return _structure.rebuild(outputs, [result])
        if isinstance(result, tuple) and all(isinstance(element, Tensor) for element in result):
            return _structure.rebuild(outputs, list(result))
        return result

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


def _tensor_lists(module: torch.jit.ScriptModule, method: Any) -> list[tuple[Any, str, list[Tensor]]]:
    """Lists that hold a module's tensors a second time and that `method` reads, as the flat weights of recurrent layers: owner, name, list."""
    graph = method.graph.copy()
    torch._C._jit_pass_inline(graph)
    found: dict[str, tuple[Any, str, list[Tensor]]] = {}
    for node in graph.findAllNodes("prim::GetAttr"):
        if str(node.output().type()) != "List[Tensor]":
            continue
        path = []
        while node.kind() == "prim::GetAttr":
            path.insert(0, node.s("name"))
            node = node.input().node()
        owner = module
        for part in path[:-1]:
            owner = getattr(owner, part)
        found[".".join(path)] = (owner._c, path[-1], owner._c.getattr(path[-1]))
    return list(found.values())


class Original:
    """The method `_memscale_original` of the archive's ScriptModule, on parameters and buffers that are given to it."""

    def __init__(self, path: str, plan: Tensor) -> None:
        """Reads the archive with LibTorch's loader. Raises ArchiveError if it is gone, cannot be read, or holds another plan than these bytes."""
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
        if not torch.equal(self._module._memscale_plan.bytes(), plan):
            raise ArchiveError(
                f"the call does not fit the plan, and {path} holds another model than when it was loaded: its original graph cannot run. "
                "Load the archive again, or keep the file while the module is in use."
            )
        self._lists = _tensor_lists(self._module, self._method)
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
            before = owner.getattr(leaf)
            owner.setattr(leaf, tensor)
            self._bound[name] = tensor
            for holder, attribute, tensors in self._lists:
                if any(element is before for element in tensors):
                    tensors[:] = [tensor if element is before else element for element in tensors]
                    holder.setattr(attribute, list(tensors))

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

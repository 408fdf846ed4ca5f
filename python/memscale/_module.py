"""Planned modules: `memscale.load` and what it returns. Needs the runtime library."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import _library, _structure
from ._original import Original
from .errors import ArchiveError, FallBackWarning, ModeError

_REMEDY = (
    "an archive holds the graph of one mode. Load the weights into the original model "
    "(original.load_state_dict(planned.state_dict())), or export and compile the model in the mode that you need."
)


class _OneMode(nn.Module):
    """A module that stays in training mode: its graph is fixed."""

    def train(self, mode: bool = True) -> _OneMode:  # noqa: FBT001, FBT002 - nn.Module's signature
        """Stays in training mode. Raises ModeError for `mode=False`."""
        if not mode:
            raise ModeError(f"cannot switch a planned module to evaluation mode: {_REMEDY}")
        return self


class Scope(_OneMode):
    """A submodule of a planned module: holds parameters and buffers under the original's names; its forward is part of the plan."""

    def __getitem__(self, index: int | str) -> nn.Module:
        """A numbered or named child, as the original's ModuleList, Sequential or ModuleDict gives it."""
        keys = [key for key in self._modules if key.isdigit()]
        if isinstance(index, str):
            return self._modules[index]  # type: ignore[return-value]
        return self._modules[keys[index]]  # type: ignore[return-value]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a submodule of a planned module cannot be called by itself: its calls are part of the whole plan")


class PlannedModule(_OneMode):
    """A training graph under a memory plan.

    Parameters, buffers, their names, order, dtypes, `requires_grad` and tying are the original module's; forward takes the original's
    arguments and returns what it returned. A call that the plan was not made for (another shape, dtype, device, `requires_grad`, numeric mode)
    runs the archive's original graph on the same parameters, with one FallBackWarning per module and a count in memory_stats.
    """

    def __init__(self, plan: Any, parameters: list[Tensor], buffers: list[Tensor], path: str) -> None:
        super().__init__()
        self._bind_plan(plan)
        self._path = path
        self._fall_backs = 0
        self._original: Original | None = None
        volatile = set(plan.non_persistent_buffers())
        state: dict[str, tuple[Tensor, bool]] = {}  # name → tensor, in the state_dict
        for name, tensor in zip(self._parameter_names, parameters, strict=True):
            parameter = nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
            state.update(dict.fromkeys((name, *self._aliases.get(name, ())), (parameter, True)))
        for name, tensor in zip(self._buffer_names, buffers, strict=True):
            state.update(dict.fromkeys((name, *self._aliases.get(name, ())), (tensor, name not in volatile)))
        for name in list(plan.state_names()) or list(state):
            tensor, persistent = state[name]
            owner, leaf = self._place(name)
            if isinstance(tensor, nn.Parameter):
                owner.register_parameter(leaf, tensor)
            else:
                owner.register_buffer(leaf, tensor, persistent=persistent)

    def _bind_plan(self, plan: Any) -> None:
        self._plan = plan
        self._parameter_names: list[str] = list(plan.parameter_names())
        self._buffer_names: list[str] = list(plan.buffer_names())
        self._aliases: dict[str, list[str]] = {k: list(v) for k, v in dict(plan.aliases()).items()}
        self._inputs: dict[str, Any] = json.loads(plan.input_structure())
        self._outputs: dict[str, Any] = json.loads(plan.output_structure())

    def _place(self, name: str) -> tuple[nn.Module, str]:
        """The submodule that owns `name`, made if need be, and the last part of the name."""
        *path, leaf = name.split(".")
        owner: nn.Module = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, Scope())
            owner = owner._modules[part]  # type: ignore[assignment]
        return owner, leaf

    def _find(self, name: str) -> Tensor:
        *path, leaf = name.split(".")
        owner: nn.Module = self
        for part in path:
            owner = owner._modules[part]  # type: ignore[assignment]
        found = owner._parameters.get(leaf)
        return found if found is not None else owner._buffers[leaf]  # type: ignore[return-value]

    def _state(self) -> tuple[list[Tensor], list[Tensor]]:
        """Parameters and buffers in plan order. Raises RuntimeError if tied tensors are tied no more."""
        for name, others in self._aliases.items():
            tensor = self._find(name)
            for other in others:
                if self._find(other) is not tensor:
                    raise RuntimeError(
                        f"{other} and {name} are one tensor in the compiled graph and two tensors now. Assign the same tensor to both "
                        "names, or compile the model without tying them."
                    )
        return [self._find(name) for name in self._parameter_names], [self._find(name) for name in self._buffer_names]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the plan, or the original graph where the plan does not apply. Arguments and result are the original's.

        Raises TypeError for arguments that the original's signature refuses.
        """
        parameters, buffers = self._state()
        try:
            inputs = _structure.flatten_arguments(self._inputs, args, kwargs)
        except _structure.Mismatch as difference:
            return self._fall_back(str(difference), args, kwargs, parameters, buffers)
        why = torch.ops.memscale.guard_failure(self._plan, parameters, buffers, inputs)
        if why:
            return self._fall_back(why, args, kwargs, parameters, buffers)
        return _structure.rebuild(self._outputs, torch.ops.memscale.run(self._plan, parameters, buffers, inputs))

    def _fall_back(
        self, why: str, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[Tensor], buffers: list[Tensor]
    ) -> Any:
        if self._fall_backs == 0:
            warnings.warn(
                f"running the original graph instead of the plan, without its memory savings: {why}. Compile the model for this "
                "setting. (Said once; memory_stats counts further calls as fall_backs.)",
                FallBackWarning,
                stacklevel=5,
            )
        self._fall_backs += 1
        if self._original is None:
            self._original = Original(self._path, self._plan.bytes())
        self._original.bind(
            {
                key: tensor
                for names, tensors in ((self._parameter_names, parameters), (self._buffer_names, buffers))
                for name, tensor in zip(names, tensors)
                for key in (name, *self._aliases.get(name, ()))
            }
        )
        return self._original.call(self._inputs, self._outputs, args, kwargs)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:  # noqa: FBT001, FBT002
        """As nn.Module's; tied names stay one tensor with `assign=True` too."""
        result = super().load_state_dict(state_dict, strict=strict, assign=assign)
        if assign:
            for name, others in self._aliases.items():
                tensor = self._find(name)
                for other in others:
                    owner, leaf = self._place(other)
                    (owner._parameters if isinstance(tensor, nn.Parameter) else owner._buffers)[leaf] = tensor
        return result

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_plan"] = self._plan.bytes()
        state["_original"] = None  # read again from the archive when it is needed
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        _library.load_runtime()
        super().__setstate__(state)
        self._bind_plan(torch.classes.memscale.Plan(state["_plan"]))

    def extra_repr(self) -> str:
        """Predicted peaks, in GiB."""
        gib = 2**30
        return (
            f"target={self._plan.target()}, predicted_peak={self._plan.predicted_peak_bytes() / gib:.3f} GiB, "
            f"eager={self._plan.predicted_eager_peak_bytes() / gib:.3f} GiB"
        )


def load(path: str | os.PathLike[str], load_weights: bool = True) -> PlannedModule:  # noqa: FBT001, FBT002
    """Reads a model.ms.pt. Nothing is unpickled.

    Args:
        path: a file that memscalec wrote. It is read again if a call ever falls back to the original graph.
        load_weights: False leaves parameters and buffers on the meta device (the archive may hold none): give them values by
            `load_state_dict(..., assign=True)`.

    Returns:
        The module, on the CPU.

    Raises:
        FileNotFoundError: there is no such file.
        ArchiveError: it is no archive with a plan, or damaged, or its plan is of another version.
        LibraryNotFoundError: the runtime library is not built or not found.
    """
    _library.load_runtime()
    name = os.fspath(path)
    if not Path(name).exists():
        raise FileNotFoundError(f"{name}: no such file; expected an archive written by memscalec -o")
    try:
        plan, parameters, buffers = torch.ops.memscale.load_archive(name, load_weights)
    except RuntimeError as error:
        text = str(error).split("\nException raised from", 1)[0]
        raise ArchiveError(text if name in text else f"{name}: {text}") from None
    return PlannedModule(plan, list(parameters), list(buffers), str(Path(name).resolve()))


def memory_stats(module: nn.Module) -> dict[str, int]:
    """Counters and bytes of a planned module.

    Returns:
        `predicted_peak_bytes` and `predicted_eager_peak_bytes` (whole step, optimizer state included); `measured_peak_bytes`: the highest
        sum of static tensors and allocations of a step so far; `fall_backs`: calls that ran the original graph; `forward_runs`,
        `backward_runs` and further counters (docs/formats/plan.md).

    Raises:
        TypeError: `module` is no planned module.
    """
    if not isinstance(module, PlannedModule):
        raise TypeError(f"memory_stats takes a module from memscale.load, found {type(module).__name__}")
    stats = dict(torch.ops.memscale.memory_stats(module._plan))
    stats["fall_backs"] = stats.pop("fallbacks", 0) + module._fall_backs
    return stats


def report(module: nn.Module) -> dict[str, Any]:
    """The compiler's report of a planned module: budget, decisions, costs. Raises TypeError if `module` is no planned module."""
    if not isinstance(module, PlannedModule):
        raise TypeError(f"report takes a module from memscale.load, found {type(module).__name__}")
    return json.loads(module._plan.report() or "{}")


class track_allocations:  # noqa: N801 - a context manager, used like a function
    """Counts every CPU allocation of the process while it is open: `with track_allocations() as tracked: ...; tracked.peak_bytes`.

    `peak_bytes` is the most that allocations made inside were alive at once, in bytes as asked for; what was there before does not count.
    One at a time. Works for any torch code, planned or not.
    """

    peak_bytes: int = 0

    def __enter__(self) -> track_allocations:
        _library.load_runtime()
        torch.ops.memscale.accounting_begin()
        return self

    def __exit__(self, *exception: object) -> None:
        self.peak_bytes = torch.ops.memscale.accounting_end()

    def current_bytes(self) -> int:
        """Bytes of the allocations made inside that are alive now."""
        return torch.ops.memscale.accounting_current()

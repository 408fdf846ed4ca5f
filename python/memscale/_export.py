"""Writes a module's training graph as an archive for memscalec: `memscale.export`."""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from .errors import ExportError, ExportWarning


def export(
    model: nn.Module,
    args: tuple[Any, ...],
    path: str | os.PathLike[str],
    kwargs: Mapping[str, Any] | None = None,
    *,
    structure_only: bool = False,
    format: str = "torch.export",  # noqa: A002 - the name the archive's kind has everywhere
) -> Path:
    """Writes the forward graph of `model`, in the mode it is in, for `memscalec`.

    The model is left as it was: mode, buffers, gradients and random state.

    Args:
        model: its forward returns a scalar loss, alone or first.
        args: positional example arguments; shapes and dtypes become those of the graph.
        path: the archive, written beside it first and then renamed. `.pt2` for torch.export, `.pt` for a trace by custom.
        kwargs: keyword example arguments (torch.export only).
        structure_only: write no weights: the graph of a twin of the model on the meta device. memscalec plans it, and the live module
            supplies the values. torch.export only; needs no memory for weights.
        format: "torch.export" or "torchscript" (a trace).

    Returns:
        The path written.

    Raises:
        ExportError: the exporter failed; its exception is the cause.
        ValueError: the options do not go together.

    Warns:
        ExportWarning: for everything present in the model that the archive does not carry.
    """
    if format not in ("torch.export", "torchscript"):
        raise ValueError(f"format must be 'torch.export' or 'torchscript', found {format!r}")
    if format == "torchscript" and structure_only:
        raise ValueError("a trace always carries weights: structure_only=True needs format='torch.export'")
    if format == "torchscript" and kwargs:
        raise ValueError("a trace takes positional arguments: give kwargs positionally, or use format='torch.export'")
    path = Path(path)
    _warn_of_hooks(model)
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        _warn("autocast is active: the archive keeps the casts that it makes, and its cache's sharing of casts is lost")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _hand_written_backwards(format):
            if format == "torchscript":
                with _state_kept(model, restore_values=True):
                    traced = _trace(model, args)
                torch.jit.save(traced, str(temporary))  # it shares the buffers: saved with the values from before the trace
            else:
                with _state_kept(model, restore_values=not structure_only):
                    _write_export(model, args, dict(kwargs or {}), temporary, structure_only)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    return path


def _warn(message: str) -> None:
    warnings.warn(message, ExportWarning, stacklevel=4)


def _trace(model: nn.Module, args: tuple[Any, ...]) -> torch.jit.ScriptModule:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        try:
            traced = torch.jit.trace(model, args, check_trace=False)
        except Exception as error:
            raise ExportError(f"torch.jit.trace failed: {error}") from error
        persistent = set(model.state_dict(keep_vars=True))
        if kept := [name for name, _ in model.named_buffers() if name not in persistent]:
            _warn(f"a trace makes every buffer part of the state_dict: {', '.join(kept)} will be new keys there")
        lost = [name for name, _ in model.named_buffers() if name not in dict(traced.named_buffers())]
        if lost:
            _warn(f"the trace does not carry the buffers {', '.join(lost)}: forward does not read them")
    return traced


def _write_export(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], path: Path, structure_only: bool) -> None:
    if structure_only:
        model = meta_twin(model)
        args, kwargs = pytree.tree_map_only(Tensor, _meta_like, (args, kwargs))
    try:
        program = torch.export.export(model, args, kwargs, strict=False)
    except Exception as error:
        raise ExportError(
            f"torch.export failed: {error}\nA model whose Python looks at values of tensors cannot be exported; format='torchscript' "
            "follows the path that the example arguments take."
        ) from error
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Expect archive file to be a file ending in .pt2.*")
        with open(path, "wb") as file:
            torch.export.save(program, file)


def meta_twin(model: nn.Module) -> nn.Module:
    """A deep copy whose parameters, buffers and other tensor attributes are on the meta device; tied tensors stay tied."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        tensors = [*module._parameters.values(), *module._buffers.values(), *vars(module).values()]
        for tensor in tensors:
            if isinstance(tensor, Tensor) and id(tensor) not in memo:
                memo[id(tensor)] = _meta_like(tensor)
    return copy.deepcopy(model, memo)


def _meta_like(tensor: Tensor) -> Tensor:
    twin = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(twin, requires_grad=tensor.requires_grad)
    return twin.requires_grad_(tensor.requires_grad)


@contextlib.contextmanager
def _state_kept(model: nn.Module, *, restore_values: bool) -> Iterator[None]:
    """Random state and buffers are after it what they were before: tracing runs the model."""
    buffers = [(b, b.detach().clone()) for b in model.buffers() if b.device.type != "meta"] if restore_values else []
    devices = sorted({p.device for p in model.parameters() if p.device.type == "cuda"}, key=str)
    with torch.random.fork_rng(devices=devices):
        yield
    with torch.no_grad():
        for buffer, value in buffers:
            if not torch.equal(buffer, value):
                buffer.copy_(value)


def _warn_of_hooks(model: nn.Module) -> None:
    kinds = {
        "_backward_hooks": "backward hooks",
        "_backward_pre_hooks": "backward pre-hooks",
    }
    for name, module in model.named_modules():
        for attribute, kind in kinds.items():
            if getattr(module, attribute):
                _warn(f"module {name or '(root)'}: {kind} are not part of the archive and will not run")
    for name, parameter in model.named_parameters():
        if getattr(parameter, "_backward_hooks", None):
            _warn(f"parameter {name}: hooks are not part of the archive; register them on the loaded module's parameter")


@contextlib.contextmanager
def _hand_written_backwards(format: str) -> Iterator[None]:  # noqa: A002
    """Warns of autograd Functions that forward goes through: torch.export keeps their forward alone."""
    seen: list[str] = []
    function = torch.autograd.Function
    original = function.__dict__["apply"]

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not cls.__module__.startswith("torch.") and name not in seen:
            seen.append(name)
        return original.__get__(None, cls)(*args, **kwargs)

    function.apply = classmethod(apply)
    try:
        yield
    finally:
        function.apply = original
    if seen and format == "torch.export":
        _warn(
            f"torch.export drops hand-written backward passes: the gradients through {', '.join(seen)} will be those of their forward's "
            "own operations. Compare with `memscalec verify`, or rewrite them as plain operations."
        )

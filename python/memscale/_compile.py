"""Runs memscalec as a program of its own: `memscale.compile`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from . import _library
from .errors import compile_error


def _shape_text(name: str, value: str | torch.Tensor | tuple[Sequence[int], torch.dtype]) -> str:
    if isinstance(value, str):
        return f"{name}={value}"
    sizes, dtype = (value.shape, value.dtype) if isinstance(value, torch.Tensor) else value
    return f"{name}={'x'.join(map(str, sizes))}:{str(dtype).removeprefix('torch.')}"


def _process_settings(extra_arguments: Sequence[str]) -> list[str]:
    """What of this process a plan depends on: the process that compiles is as a rule the one that trains."""
    given = {argument.partition("=")[0] for argument in extra_arguments}
    command = [] if "--threads" in given else ["--threads", str(torch.get_num_threads())]
    deterministic = torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    if deterministic and "--deterministic" not in given:
        command.append("--deterministic")
    return command


def compile(  # noqa: A001 - the verb of the command line
    path_in: str | os.PathLike[str],
    path_out: str | os.PathLike[str],
    *,
    budget: str | float | None = None,
    target: str | os.PathLike[str] | None = None,
    shape: Sequence[str] | Mapping[str, str | torch.Tensor | tuple[Sequence[int], torch.dtype]] | None = None,
    optimizer: str | None = None,
    config: str | os.PathLike[str] | None = None,
    extra_arguments: Sequence[str] = (),
) -> dict[str, Any]:
    """Compiles a training graph into an archive with a memory plan, by running memscalec.

    Without `config` the plan is for this process's number of threads and deterministic mode.

    Args:
        path_in: a TorchScript archive or a torch.export archive.
        path_out: where the planned archive is written.
        budget: the peak that a step may reach: "12GiB", "600MiB", "0.5x" (or 0.5) of eager's peak, "min", or
            "auto" (the target's memory).
        target: name of a target profile, or the path of one.
        shape: one entry per forward input, by name: "8x128:int64", a tensor of that shape, or (sizes, dtype).
        optimizer: whose state the peak counts: "adamw", "sgd", "sgd:momentum", each with ":fused", ":foreach" or ":none", or "none".
        config: a YAML file with the same settings.
        extra_arguments: further arguments of memscalec, as on its command line.

    Returns:
        memscalec's JSON report: predicted peaks in bytes, decisions, times.

    Raises:
        CompileError: or the subclass that belongs to memscalec's exit code, with memscalec's message.
        LibraryNotFoundError: memscalec was not found.
    """
    command = [str(_library.compiler_path()), os.fspath(path_in), "-o", os.fspath(path_out)]
    if budget is not None:
        command += ["--budget", f"{budget}x" if isinstance(budget, (int, float)) else budget]
    if target is not None:
        command += ["--target", os.fspath(target)]
    for entry in [_shape_text(*item) for item in shape.items()] if isinstance(shape, Mapping) else shape or ():
        command += ["--shape", entry]
    if optimizer is not None:
        command += ["--optimizer", optimizer]
    if config is None:
        command += _process_settings(extra_arguments)
    if config is not None:
        command += ["--config", os.fspath(config)]
    command += extra_arguments
    with tempfile.TemporaryDirectory(prefix="memscale-") as folder:
        report = Path(folder, "report.json")
        command += ["--report", str(report)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = done.stderr.strip() or f"memscalec ended with status {done.returncode} and said nothing"
            raise compile_error(done.returncode, message, command)
        return json.loads(report.read_text())

"""Training runs to compare bit for bit, and archives compiled once per test session. Needs the built memscalec and runtime."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import zoo
from torch import Tensor, nn

import memscale

_FOLDER = tempfile.TemporaryDirectory(prefix="memscale-tests-")


@functools.lru_cache(maxsize=None)
def archive(name: str, form: str) -> Path:
    """The zoo model `name` exported as `form` ("trace" or "pt2")."""
    suffix, exporter = zoo.FORMATS[form]
    return exporter(zoo.make(name), zoo.ZOO[name].inputs(0), Path(_FOLDER.name, f"{name}{suffix}"))


@functools.lru_cache(maxsize=None)
def planned(name: str, form: str, budget: str, optimizer: str = "adamw") -> Path:
    """The model compiled under a budget."""
    out = Path(_FOLDER.name, f"{name}-{form}-{budget}-{optimizer}.ms.pt")
    shape = zoo.ZOO[name].shapes() if form == "trace" else None
    memscale.compile(archive(name, form), out, budget=budget, target="cpu", optimizer=optimizer, shape=shape)
    return out


def memscalec(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs memscalec; the caller looks at its exit code and output."""
    return subprocess.run(
        [str(memscale.compiler_path()), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300
    )


@dataclasses.dataclass
class Record:
    """What a training run left behind, step by step."""

    outputs: list[list[Tensor]] = dataclasses.field(default_factory=list)
    gradients: list[dict[str, Tensor | None]] = dataclasses.field(default_factory=list)
    state: list[dict[str, Tensor]] = dataclasses.field(default_factory=list)
    random: list[Tensor] = dataclasses.field(default_factory=list)


def train(
    model: nn.Module,
    inputs: Callable[[int], Sequence[Tensor]],
    steps: int = 3,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3),
) -> Record:
    """Trains for some steps from seed 5 and records every output, gradient, parameter, buffer and the generator."""
    torch.manual_seed(5)
    steps_of = optimizer(model)
    record = Record()
    for step in range(steps):
        outputs = model(*inputs(step))
        outputs[0].backward()
        record.outputs.append([o.detach().clone() for o in outputs])
        record.gradients.append({n: None if p.grad is None else _copy(p.grad) for n, p in model.named_parameters()})
        steps_of.step()
        steps_of.zero_grad()
        record.state.append({n: _copy(t) for n, t in [*model.named_parameters(), *model.named_buffers()]})
        record.random.append(torch.get_rng_state())
    return record


@functools.lru_cache(maxsize=None)
def eager(name: str) -> Record:
    """The reference: the zoo model trained in eager."""
    return train(zoo.make(name), zoo.ZOO[name].inputs)


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.preserve_format)


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Equal dtype, sizes, strides and every bit (so -0.0 is not 0.0, and a NaN is itself)."""
    if (left.dtype, left.shape, left.stride()) != (right.dtype, right.shape, right.stride()):
        return False
    return torch.equal(left.detach().contiguous().flatten().view(torch.uint8), right.detach().contiguous().flatten().view(torch.uint8))


def differences(found: Record, expected: Record) -> list[str]:
    """One line for everything that differs in any bit; empty if the runs are the same."""
    lines = []
    for step, (a, b) in enumerate(zip(found.outputs, expected.outputs, strict=True)):
        lines += [f"step {step}: output {i}" for i, (x, y) in enumerate(zip(a, b, strict=True)) if not same_bits(x, y)]
    for what in ("gradients", "state"):
        for step, (a, b) in enumerate(zip(getattr(found, what), getattr(expected, what), strict=True)):
            if list(a) != list(b):
                lines.append(f"step {step}: {what} have other names or another order: {sorted(set(a) ^ set(b)) or list(a)}")
                continue
            for name in a:
                x, y = a[name], b[name]
                if (x is None) != (y is None) or (x is not None and not same_bits(x, y)):
                    lines.append(f"step {step}: {what} {name}: {_difference(x, y)}")
    lines += [f"step {i}: generator state" for i, (a, b) in enumerate(zip(found.random, expected.random)) if not torch.equal(a, b)]
    return lines


def _difference(left: Tensor | None, right: Tensor | None) -> str:
    if left is None or right is None:
        return f"{'absent' if left is None else 'present'}, expected {'absent' if right is None else 'present'}"
    if (left.dtype, left.shape, left.stride()) != (right.dtype, right.shape, right.stride()):
        return f"{left.dtype} {tuple(left.shape)} {left.stride()}, expected {right.dtype} {tuple(right.shape)} {right.stride()}"
    return f"largest difference {(left.double() - right.double()).abs().max().item():.3g}"

"""Trains MiniLM (real weights) on Python's documentation strings, eager and planned, each in a fresh process, and compares.

Needs the built memscalec and runtime library (`make build`). Writes into a temporary folder and removes it. Exits with 1 if losses,
gradients or weights differ in any bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import memscale
import minilm

MIB = 1024**2


def make_export(folder: Path, batch: int, tokens: int, steps: int) -> None:
    """Role `export`: the training graph, its shapes, and the batches of the run."""
    data = minilm.batches(steps, batch, tokens)
    torch.save(data, folder / "batches.pt")
    shapes = minilm.export(folder / "model.pt", data[0])
    (folder / "shapes.json").write_text(json.dumps(shapes))


def train(folder: Path, way: str) -> None:
    """Role `eager` or `planned`: trains, and writes losses, gradients of every step, final weights, peak and times."""
    torch.manual_seed(0)
    model = memscale.load(folder / "model.ms.pt") if way == "planned" else minilm.MiniLM().train()
    names = [name for name, _ in model.named_parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    data = torch.load(folder / "batches.pt", weights_only=True)
    static_bytes = sum(t.nbytes for t in [*model.parameters(), *model.buffers()])
    losses, times = [], []
    with memscale.track_allocations() as tracked:
        for step, batch in enumerate(data):
            start = time.perf_counter()
            loss, _ = model(*batch)
            loss.backward()
            middle = time.perf_counter()
            torch.save(dict(zip(names, [p.grad for p in model.parameters()])), folder / f"{way}-gradients-{step}.pt")
            resume = time.perf_counter()
            optimizer.step()
            optimizer.zero_grad()
            times.append(middle - start + time.perf_counter() - resume)
            losses.append(loss.detach().clone())
            del loss
            print(f"  {way}: step {step + 1} of {len(data)}, loss {losses[-1].item():.4f}, {times[-1]:.2f} s", file=sys.stderr)
    # Not the state_dict: a trace makes buffers persistent that the live model leaves out of it.
    torch.save({name: p.detach() for name, p in model.named_parameters()}, folder / f"{way}-weights.pt")
    torch.save(losses, folder / f"{way}-losses.pt")
    result: dict[str, Any] = {
        "peak_bytes": static_bytes + sum(t.nbytes for t in data[0]) + tracked.peak_bytes,
        "step_s": times,
        "losses": [loss.item() for loss in losses],
    }
    if way == "planned":
        result["stats"] = memscale.memory_stats(model)
    (folder / f"{way}.json").write_text(json.dumps(result))


def role(folder: Path, name: str, *arguments: object) -> None:
    """Runs a role of this file in a fresh process."""
    command = [sys.executable, __file__, "--role", name, "--folder", str(folder), *map(str, arguments)]
    subprocess.run(command, check=True)


def largest_difference(left: Any, right: Any) -> float:
    """Largest absolute difference of two equally built collections of tensors; infinity where dtype, shape or name differs."""
    if isinstance(left, dict):
        if list(left) != list(right):
            return float("inf")
        left, right = list(left.values()), list(right.values())
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        if a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
            if a is not None or b is not None:
                return float("inf")
            continue
        if not torch.equal(a, b):
            difference = (a.double() - b.double()).abs().max().item()
            worst = max(worst, difference if difference > 0 else float("inf"))  # NaN or -0.0
    return worst


def compare(folder: Path, steps: int) -> dict[str, float]:
    def load(name: str) -> Any:
        return torch.load(folder / name, weights_only=True)

    return {
        "losses": largest_difference(load("eager-losses.pt"), load("planned-losses.pt")),
        "gradients": max(
            largest_difference(load(f"eager-gradients-{i}.pt"), load(f"planned-gradients-{i}.pt")) for i in range(steps)
        ),
        "weights": largest_difference(load("eager-weights.pt"), load("planned-weights.pt")),
    }


def print_table(report: dict[str, Any], compile_s: float, eager: dict[str, Any], planned: dict[str, Any], differences: dict[str, float]) -> int:
    """Prints the comparison; 0 if nothing differs."""
    stats = planned["stats"]

    def mib(value: float) -> str:
        return f"{value / MIB:,.1f} MiB"

    def seconds(values: list[float]) -> str:
        return f"{statistics.median(values[1:] or values):.2f} s"

    def against(found: float, base: float) -> str:
        return f"{found / base:.3f}x"

    rows = [
        ("", "eager", "planned", "planned / eager"),
        ("predicted peak", mib(stats["predicted_eager_peak_bytes"]), mib(stats["predicted_peak_bytes"]),
         against(stats["predicted_peak_bytes"], stats["predicted_eager_peak_bytes"])),
        ("measured peak", mib(eager["peak_bytes"]), mib(planned["peak_bytes"]), against(planned["peak_bytes"], eager["peak_bytes"])),
        ("measured / predicted", against(eager["peak_bytes"], stats["predicted_eager_peak_bytes"]),
         against(planned["peak_bytes"], stats["predicted_peak_bytes"]), ""),
        ("step time (median)", seconds(eager["step_s"]), seconds(planned["step_s"]),
         against(statistics.median(planned["step_s"][1:]), statistics.median(eager["step_s"][1:]))),
        ("loss, first and last", *(f"{way['losses'][0]:.4f}, {way['losses'][-1]:.4f}" for way in (eager, planned)), ""),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(widths[0]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(row)).rstrip())
    print(f"largest difference    losses {differences['losses']:g}, gradients {differences['gradients']:g}, weights {differences['weights']:g}")
    print(f"decisions             {decisions(report)}")
    print(f"memscalec             {compile_s:.1f} s")
    if stats["fall_backs"]:
        print(f"{stats['fall_backs']} calls ran the original graph instead of the plan", file=sys.stderr)
        return 1
    return 0 if not any(differences.values()) else 1


def decisions(report: dict[str, Any]) -> str:
    """The report's decisions in a line, and the three largest recomputed tensors."""
    counts, time_of = report["counts"], report["time"]
    recompute = counts["recompute"]
    line = (
        f"{recompute['count']} tensors ({recompute['bytes'] / MIB:,.0f} MiB) recomputed, {counts['inplace']['count']} results made in place, "
        f"predicted time {time_of['planned_us'] / max(time_of['base_us'], 1e-9):.3f}x (policy {report['policy']})"
    )
    largest = [d for d in report["decisions"] if d["kind"] == "recompute"][:3]
    return "\n".join([line, *(f"{'':22}{d['tensor']}: {d['bytes'] / MIB:.1f} MiB, {d['reason']}" for d in largest)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="0.5x", help="as memscalec's (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="pairs of texts a step (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens a text (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=4, help="training steps (default: %(default)s)")
    parser.add_argument("--role", choices=["export", "eager", "planned"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "export":
        make_export(options.folder, options.batch, options.tokens, options.steps)
        return 0
    if options.role:
        train(options.folder, options.role)
        return 0

    with tempfile.TemporaryDirectory(prefix="memscale-demo-") as name:
        folder = Path(name)
        print(f"Exporting MiniLM, {options.batch} pairs of {options.tokens} tokens", file=sys.stderr)
        role(folder, "export", "--batch", options.batch, "--tokens", options.tokens, "--steps", options.steps)
        shapes = json.loads((folder / "shapes.json").read_text())
        command = ["memscalec", "model.pt", "-o", "model.ms.pt", "--budget", options.budget, "--target", "cpu", "--optimizer", "adamw"]
        print(" ".join(command + [f"--shape {shape}" for shape in shapes]), file=sys.stderr)
        start = time.perf_counter()
        report = memscale.compile(
            folder / "model.pt", folder / "model.ms.pt", budget=options.budget, target="cpu", optimizer="adamw", shape=shapes
        )
        compile_s = time.perf_counter() - start
        role(folder, "eager")
        role(folder, "planned")
        differences = compare(folder, options.steps)
        eager, planned = (json.loads((folder / f"{way}.json").read_text()) for way in ("eager", "planned"))
    return print_table(report, compile_s, eager, planned, differences)


if __name__ == "__main__":
    sys.exit(main())

"""A training step on the CPU: eager beside planned at several budgets and beside torch.utils.checkpoint, in one run.

The ways take turns step by step in one process, so that what else the machine does hits all of them alike. A step is forward and
backward; its peak is parameters, buffers and inputs plus the most that the step's allocations held at once. Needs `make build`.
Writes benchmarks/results/cpu_step.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples" / "python")]

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import memscale
import minilm

BUDGETS = ("1.0x", "0.7x", "0.5x")


class GPT2(nn.Module):
    """GPT-2 with 6 layers of 256; forward(ids) returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(n_layer=6, n_embd=256, n_head=8, vocab_size=4096, n_positions=128, bos_token_id=0, eos_token_id=0)
        self.model = GPT2LMHeadModel(config)

    def forward(self, ids: Tensor) -> Tensor:
        logits = self.model(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


def gpt2_case() -> tuple[Callable[[], nn.Module], tuple[Tensor, ...], list[str]]:
    ids = torch.randint(0, 4096, (8, 128), generator=torch.Generator().manual_seed(1))
    return lambda: GPT2().train(), (ids,), ["ids=8x128:int64"]


def minilm_case() -> tuple[Callable[[], nn.Module], tuple[Tensor, ...], list[str]]:
    inputs = minilm.batches(1, 16, 64)[0]
    return lambda: minilm.MiniLM().train(), inputs, [f"{n}=16x64:int64" for n in minilm.INPUT_NAMES]


CASES = {"gpt2-6x256, 8x128": gpt2_case, "MiniLM, 2x16x64": minilm_case}


def checkpointed(model: nn.Module) -> nn.Module:
    """The model with transformers' gradient checkpointing (torch.utils.checkpoint on every block)."""
    inner = model.model if hasattr(model, "model") else model.encoder
    inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def step(model: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[float, Tensor]:
    """Seconds of one forward and backward from seed 0, and the loss."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    start = time.perf_counter()
    output = model(*inputs)
    loss = output[0] if isinstance(output, tuple) else output
    loss.backward()
    return time.perf_counter() - start, loss.detach()


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Times and peaks of every way for one model."""
    build, inputs, shapes = CASES[name]()

    def fresh() -> nn.Module:
        torch.manual_seed(0)
        return build()

    ways: dict[str, nn.Module] = {"eager": fresh(), "checkpoint": checkpointed(fresh())}
    with tempfile.TemporaryDirectory(prefix="memscale-bench-") as folder:
        archive = Path(folder, "model.pt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.trace(fresh(), inputs, check_trace=False).save(str(archive))
        compile_s: dict[str, float] = {}
        for budget in BUDGETS:
            out = Path(folder, f"{budget}.ms.pt")
            start = time.perf_counter()
            try:
                memscale.compile(archive, out, budget=budget, target="cpu", optimizer="none", shape=shapes)
            except memscale.BudgetInfeasibleError as error:
                print(f"{name}: {budget}: {error}", file=sys.stderr)
                continue
            compile_s[f"planned {budget}"] = time.perf_counter() - start
            ways[f"planned {budget}"] = memscale.load(out)
        times: dict[str, list[float]] = {way: [] for way in ways}
        peaks: dict[str, int] = {}
        losses: dict[str, Tensor] = {}
        gradients: dict[str, list[Tensor | None]] = {}
        for way, model in ways.items():  # also the warm-up
            model.zero_grad(set_to_none=True)
            static_bytes = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
                                for t in [*model.parameters(), *model.buffers(), *inputs]}.values())
            with memscale.track_allocations() as tracked:
                _, losses[way] = step(model, inputs)
            peaks[way] = static_bytes + tracked.peak_bytes
            gradients[way] = [p.grad for p in model.parameters()]
            equal = torch.equal(losses[way], losses["eager"]) and all(
                (a is None and b is None) or torch.equal(a, b) for a, b in zip(gradients[way], gradients["eager"])
            )
            if not equal:
                raise RuntimeError(f"{name}: {way} does not give eager's bits")
            if way != "eager":
                gradients[way] = []
                model.zero_grad(set_to_none=True)
        del gradients
        for _ in range(rounds):
            for way, model in ways.items():
                times[way].append(step(model, inputs)[0])
                model.zero_grad(set_to_none=True)
        result: dict[str, Any] = {}
        eager_s = statistics.median(times["eager"])
        for way, model in ways.items():
            result[way] = {
                "step_s": statistics.median(times[way]),
                "step_s_all": times[way],
                "time_ratio": statistics.median(a / b for a, b in zip(times[way], times["eager"])),
                "time_ratio_of_medians": statistics.median(times[way]) / eager_s,
                "peak_bytes": peaks[way],
                "peak_ratio": peaks[way] / peaks["eager"],
            }
            if way in compile_s:
                stats = memscale.memory_stats(model)
                result[way] |= {
                    "predicted_peak_bytes": stats["predicted_peak_bytes"],
                    "predicted_eager_peak_bytes": stats["predicted_eager_peak_bytes"],
                    "fall_backs": stats["fall_backs"],
                    "compile_s": compile_s[way],
                }
    return result


def environment() -> dict[str, Any]:
    """Device, versions, commit and command."""
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "unknown")
    git = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    import transformers

    return {
        "device": cpu,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "memscale": memscale.__version__,
        "commit": git.stdout.strip() or "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "command": shlex.join(["python", *sys.argv]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="timed steps of each way (default: %(default)s)")
    parser.add_argument("--model", choices=list(CASES), help="one model alone")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "cpu_step.json")
    options = parser.parse_args()
    results: dict[str, Any] = {"environment": environment(), "models": {}}
    for name in [options.model] if options.model else CASES:
        results["models"][name] = measured = measure(name, options.rounds)
        print(f"{name:<22} {'step s':>8} {'x eager':>8} {'peak MiB':>9} {'x eager':>8}")
        for way, row in measured.items():
            print(f"  {way:<20} {row['step_s']:8.3f} {row['time_ratio']:8.3f} {row['peak_bytes'] / 2**20:9.1f} {row['peak_ratio']:8.3f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

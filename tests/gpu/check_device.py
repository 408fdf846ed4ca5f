"""Trains planned and eager side by side on the GPU and compares bit for bit. usage: check_device.py FOLDER OUT.json [--deterministic]

FOLDER holds NAME-DTYPE-BUDGET.ms.pt, compiled from export_models.py's archives for the device. For each: the calls that the plan makes in its
save-all form against those of eager (below autograd, in order), then three AdamW steps of each, losses, gradients, buffers and parameters
compared. Eager itself may differ from run to run (attention backward adds with atomics): then the parameters that differ are named and nothing
is decided. With --deterministic (archives compiled with memscalec --deterministic) all runs are under torch.use_deterministic_algorithms and
everything must be equal. Peaks are max_memory_allocated over the steps. Exit status 1 if anything differs that eager repeats in that mode.
"""

from __future__ import annotations

import difflib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "python")]

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import memscale
from gpu_models import DTYPES, MODELS

STEPS = 3
# Views and metadata: they move no data, and the plan folds those that come back to a layout it has.
VIEWS = {"t", "view", "_unsafe_view", "transpose", "detach", "alias", "expand", "slice", "select", "split", "unsqueeze", "squeeze", "permute",
         "as_strided", "_reshape_alias", "unbind", "split_with_sizes"}


class Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        self.names.append(canonical(str(func)))
        return func(*args, **(kwargs or {}))


def canonical(name: str) -> str:
    """`aten.add_.Tensor` and `aten::add.Tensor` → `add`: the in-place form computes the same."""
    return name.replace("::", ".").split(".")[1].rstrip("_")


def computing(names: list[str]) -> list[str]:
    return [n for n in names if n not in VIEWS and n not in ("ones_like", "empty")]


def train(module: nn.Module, inputs, dtype: torch.dtype) -> dict:  # noqa: ANN001
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)
    torch.manual_seed(7)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result: dict = {"losses": [], "gradients": []}
    for step in range(STEPS):
        loss = module(*inputs(dtype, "cuda", step))
        loss.backward()
        result["losses"].append(loss.detach().clone())
        if step == 0:
            result["peak_first_step"] = torch.cuda.max_memory_allocated()
        result["gradients"].append({n: p.grad.detach().cpu() for n, p in module.named_parameters()})
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    result["peak"] = torch.cuda.max_memory_allocated()
    times = []
    for step in range(6):
        batch = inputs(dtype, "cuda", step)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        module(*batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    result["step_s"] = statistics.median(times[1:])
    result["state"] = {n: t.detach().cpu() for n, t in module.state_dict().items()}
    return result


def largest_difference(a: Tensor, b: Tensor) -> float:
    return 0.0 if torch.equal(a, b) else float((a.double() - b.double()).abs().max())


def first_step(eager: dict, again: dict, planned: dict) -> dict:
    """Differences of the first step among what eager repeats, and the names of what it does not."""
    first, repeat, ours = (r["gradients"][0] for r in (eager, again, planned))
    unstable = sorted(n for n in first if not torch.equal(first[n], repeat[n]))
    differing = sorted(n for n in first if n not in unstable and not torch.equal(first[n], ours[n]))
    return {"loss": largest_difference(eager["losses"][0], planned["losses"][0]), "compared": len(first) - len(unstable),
            "differing": differing, "eager_does_not_repeat": unstable}


def compare(eager: dict, planned: dict) -> dict:
    losses = max(largest_difference(a, b) for a, b in zip(eager["losses"], planned["losses"]))
    gradients = {n: max(largest_difference(a[n], b[n]) for a, b in zip(eager["gradients"], planned["gradients"])) for n in eager["gradients"][0]}
    state = {n: largest_difference(t, planned["state"][n]) for n, t in eager["state"].items()}
    worst = sorted((d, n) for n, d in gradients.items() if d)[-3:]
    return {"losses": losses, "gradients": max(gradients.values()), "state": max(state.values()), "worst_gradients": worst}


def fresh(name: str, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name][0]().to(dtype).cuda().train()


def on_device(planned: nn.Module) -> nn.Module:
    """`to_empty` that keeps tied parameters tied."""
    names: dict[int, list[str]] = {}
    for name, parameter in planned.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    planned.to_empty(device="cuda")
    for first, *others in names.values():
        for other in others:
            folder, _, leaf = other.rpartition(".")
            setattr(planned.get_submodule(folder), leaf, planned.get_parameter(first))
    return planned


def main() -> int:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms("--deterministic" in sys.argv)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "commit": commit,
              "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%d"), "runs": []}
    failed = False
    for name in MODELS:
        for label, dtype in DTYPES.items():
            inputs = MODELS[name][1]
            model = fresh(name, dtype)
            with Calls() as calls:
                model(*inputs(dtype, "cuda")).backward()
            del model
            eager = train(fresh(name, dtype), inputs, dtype)
            again = train(fresh(name, dtype), inputs, dtype)
            self_difference = compare(eager, again)
            repeats = not any(self_difference[k] for k in ("losses", "gradients", "state"))
            failed |= torch.are_deterministic_algorithms_enabled() and not repeats
            for archive in sorted(folder.glob(f"{name}-{label}-*.ms.pt")):
                run: dict = {"archive": archive.name, "eager_against_itself": self_difference}
                try:
                    planned = on_device(memscale.load(archive, load_weights=False))
                    planned.load_state_dict(fresh(name, dtype).state_dict())
                    if "1.0x" in archive.name:
                        with Calls() as plan_calls:
                            planned(*inputs(dtype, "cuda")).backward()
                        planned.zero_grad(set_to_none=True)
                        planned.load_state_dict(fresh(name, dtype).state_dict())
                        a, b = computing(calls.names), computing(plan_calls.names)
                        difference = [line for line in difflib.unified_diff(a, b, lineterm="", n=0) if line[:2] not in ("--", "++", "@@")]
                        run["calls"] = {"eager": len(a), "plan": len(b), "difference": Counter(difference).most_common(20),
                                        "same_multiset": Counter(a) == Counter(b)}
                    result = train(planned, inputs, dtype)
                    run.update(difference=compare(eager, result), eager_peak=eager["peak"], planned_peak=result["peak"], eager_step_s=eager["step_s"],
                               planned_step_s=result["step_s"], stats={k: int(v) for k, v in memscale.memory_stats(planned).items()})
                    run["first_step"] = first_step(eager, again, result)
                    failed |= run["first_step"]["loss"] != 0 or run["stats"].get("fall_backs", 0) > 0
                    failed |= repeats and any(run["difference"][k] for k in ("losses", "gradients", "state"))
                    del planned
                except Exception as error:  # noqa: BLE001 - one archive's failure must not hide the others'
                    run["error"] = repr(error)[:2000]
                    failed = True
                report["runs"].append(run)
                print(json.dumps(run), flush=True)
                torch.cuda.empty_cache()
    out.write_text(json.dumps(report, indent=1))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())

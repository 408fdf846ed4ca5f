"""Captures the networks of the planner's benchmark: networks.py OUT [--only NAME ...] [--target h200|cpu].

Each network is built on the meta device, exported without weights, and captured by memscalec into OUT/NAME.json
(memscale.problem/1; gzipped where it is large). Needs no GPU and no memory for weights, but `make build` and, for DenseNet, VGG
and MobileNet, torchvision.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch
from torch import Tensor, nn

import memscale
from models import gan, language, recurrent, vision

LARGE_BYTES = 4 << 20
GB = 1e9 / 2**30
FLOPS_TARGET = HERE / "flops.yaml"


@dataclasses.dataclass(frozen=True)
class Network:
    """One network: `build` takes the sizes in `full`, or in `tiny` for a test, where `batch` is always one of them."""

    name: str
    build: Callable[..., tuple[nn.Module, tuple[Tensor, ...]]]
    full: dict[str, Any]
    tiny: dict[str, Any]
    anchor_gib: float = 0  # base memory of DTR's trace or the measured peak of eager; see README.md
    optimizer: str = "none"  # DTR and Checkmate count forward and backward alone
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # of both
    target: Path | None = None  # instead of --target

    def make(self, sizes: dict[str, Any]) -> tuple[nn.Module, tuple[Tensor, ...]]:
        model, inputs = self.build(**self.options, **sizes)
        return model.train(), inputs


NETWORKS: dict[str, Network] = {
    n.name: n
    for n in (
        Network(
            "unet-6", vision.unet, {"batch": 6, "size": (512, 512)},
            {"batch": 2, "size": (32, 32), "width": 4, "levels": 3}, 8.42 * GB,
        ),
        Network(
            "resnet32-56", vision.resnet_cifar, {"batch": 56, "size": 272}, {"batch": 4, "width": 8}, 10.06 * GB,
            options={"depth": 32},
        ),
        Network("resnet1202-64", vision.resnet_cifar, {"batch": 64, "depth": 1202}, {"batch": 4, "depth": 50, "width": 4}),
        Network(
            "transformer-10", language.transformer, {"batch": 10, "length": 560},
            {"batch": 2, "length": 16, "layers": 2, "width": 32, "heads": 4, "vocabulary": 100}, 9.86 * GB,
        ),
        Network(
            "inceptionv4-64", vision.inception_v4, {"batch": 64},
            {"batch": 2, "size": 107, "share": 16, "repeats": (1, 1, 1)}, 11.25 * GB,
        ),
        Network(
            "densenet121-84", vision.torchvision_model, {"batch": 84, "growth_rate": 32, "num_init_features": 64},
            {"batch": 4, "size": 64, "classes": 10, "growth_rate": 4, "num_init_features": 8}, 11.02 * GB,
            options={"name": "DenseNet", "block_config": (6, 12, 24, 16)},
        ),
        Network(
            "treelstm-6", recurrent.treelstm, {"batch": 36, "depth": 7, "features": 100, "hidden": 512},
            {"batch": 4, "depth": 3, "features": 8, "hidden": 16}, 0.17 * GB,
        ),
        Network(
            "lstm-128", recurrent.lstm, {"batch": 1280, "steps": 128, "features": 1024, "hidden": 1024},
            {"batch": 4, "steps": 8, "features": 8, "hidden": 16}, 5.60 * GB,
        ),
        Network(
            "unroll_gan-512", gan.unrolled_gan, {"batch": 512, "hidden": 256, "steps": 30},
            {"batch": 16, "noise": 8, "hidden": 16, "steps": 3}, 0.25 * GB,
        ),
        Network(
            "gpt2-xl-8x1024", language.gpt2, {"batch": 8, "length": 1024},
            {"batch": 2, "length": 16, "layers": 2, "width": 32, "heads": 4, "vocabulary": 100, "dtype": torch.float32},
            46.27, "adamw:fused",
        ),
        Network(
            "bert-large-64x512", language.bert, {"batch": 64, "length": 512},
            {"batch": 2, "length": 16, "layers": 2, "width": 32, "heads": 4, "vocabulary": 100, "dtype": torch.float32},
            31.90, "adamw:fused",
        ),
        Network(
            "llama3-8b-32x256", language.llama, {"batch": 32, "length": 256},
            {"batch": 2, "length": 16, "layers": 2, "width": 32, "heads": 4, "groups": 2, "inner": 48, "vocabulary": 100,
             "dtype": torch.float32}, 105.96, "adamw:fused",
        ),
        Network(
            "vgg19", vision.torchvision_model, {"batch": 167}, {"batch": 8, "size": 32, "classes": 10}, options={"name": "vgg19"}
        ),
        Network(
            "vgg19-flops", vision.torchvision_model, {"batch": 167}, {"batch": 8, "size": 32, "classes": 10},
            options={"name": "vgg19"}, target=FLOPS_TARGET,
        ),
        Network(
            "mobilenetv2-128", vision.torchvision_model, {"batch": 128},
            {"batch": 4, "size": 64, "classes": 10, "width_mult": 0.25}, options={"name": "mobilenet_v2"},
        ),
        Network(
            "unet3d-2", vision.unet, {"batch": 2, "size": (128, 128, 128)},
            {"batch": 2, "size": (16, 16, 16), "width": 4, "levels": 3},
            options={"cin": 1, "classes": 3},
        ),
    )
}  # fmt: skip


def capture(network: Network, sizes: dict[str, Any], target: str, out: Path, folder: Path) -> dict[str, Any]:
    """Writes the network's problem to `out` (or `out`.gz) and returns the measured row of the table."""
    start = time.perf_counter()
    archive = folder / f"{network.name}.pt2"
    with torch.device("meta"):
        model, inputs = network.make(sizes)
    memscale.export(model, inputs, archive, structure_only=True)
    exported = time.perf_counter()
    command = [str(memscale.compiler_path()), str(archive), "--emit", "problem", "--emit-to", str(out)]
    command += ["--target", str(network.target or target), "--optimizer", network.optimizer, "--budget", "1.0x", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    captured = time.perf_counter()
    archive.unlink()
    if done.returncode != 0:
        raise RuntimeError(f"memscalec ended with {done.returncode}: {done.stderr.strip()}")
    problem = read_problem(out)
    written = out.stat().st_size
    if written > LARGE_BYTES:
        out.with_name(f"{out.name}.gz").write_bytes(gzip.compress(out.read_bytes(), compresslevel=6, mtime=0))
        out.unlink()
    return {
        "ops": len(problem["ops"]),
        "storages": len(problem["storages"]),
        "save_all_gib": peak_bytes(problem) / 2**30,
        "eager_gib": peak_bytes(problem, eager=True) / 2**30,
        "anchor_gib": network.anchor_gib,
        "export_s": exported - start,
        "capture_s": captured - exported,
        "all_s": time.perf_counter() - start,
        "json_mib": written / 2**20,
    }


def read_problem(path: Path) -> dict[str, Any]:
    """A problem as `capture` left it: `path`, or `path`.gz."""
    return json.loads(path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()))


def peak_bytes(problem: dict[str, Any], eager: bool = False) -> int:
    """Peak of the step that recomputes nothing: docs/formats/problem.md. `eager`: with what eager holds beyond it."""
    ops, storages = problem["ops"], problem["storages"]
    extra = problem.get("eager_extra_bytes") if eager else None
    last = {}
    for index, op in enumerate(ops):
        for storage in [*op["outputs"], *op["inputs"], *op.get("mutates", [])]:
            last[storage] = index
    ends: list[list[int]] = [[] for _ in ops]
    for storage, index in last.items():
        if not storages[storage].get("resident") and not storages[storage].get("keep"):
            ends[index].append(storage)
    live = problem.get("static_bytes", 0) + sum(s["bytes"] for s in storages if s.get("resident"))
    peak = live
    for index, op in enumerate(ops):
        live += sum(storages[s]["bytes"] for s in op["outputs"])
        peak = max(peak, live + op.get("workspace_bytes", 0) + (extra[index] if extra else 0))
        live -= sum(storages[s]["bytes"] for s in ends[index])
    return peak


COLUMNS = {"ops": 8, "storages": 10, "save-all": 10, "eager": 9, "anchor": 9, "export": 9, "capture": 9, "all": 8, "JSON": 9}
HEADER = f"{'network':<19}" + "".join(f"{name:>{width}}" for name, width in COLUMNS.items())


def line(name: str, row: dict[str, Any]) -> str:
    """One line of the table: GiB, seconds, MiB."""
    anchor = f"{row['anchor_gib']:.2f}" if row["anchor_gib"] else "-"
    return (
        f"{name:<19}{row['ops']:>8}{row['storages']:>10}{row['save_all_gib']:>10.3f}{row['eager_gib']:>9.3f}"
        f"{anchor:>9}{row['export_s']:>8.1f}s{row['capture_s']:>8.1f}s{row['all_s']:>7.1f}s{row['json_mib']:>6.1f}MiB"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(":")[0])
    parser.add_argument("out", type=Path, nargs="?", help="folder of the problems")
    parser.add_argument("--only", nargs="+", choices=list(NETWORKS), metavar="NAME", help="these networks (default: all)")
    parser.add_argument("--target", choices=["h200", "cpu"], default="h200", help="target profile (default: %(default)s)")
    parser.add_argument("--batch", type=int, help="another batch; the file is NAME-BATCH.json")
    parser.add_argument("--list", action="store_true", help="print the networks and their sizes")
    options = parser.parse_args()
    if options.list:
        for network in NETWORKS.values():
            print(f"{network.name:<20}{' '.join(f'{k}={v}' for k, v in (network.options | network.full).items())}")
        return 0
    if options.out is None:
        parser.error("OUT is missing: the folder of the problems")
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    failed = 0
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(prefix="memscale-networks-") as folder:
        for name in options.only or NETWORKS:
            out = options.out / f"{name}{f'-{options.batch}' if options.batch else ''}.json"
            sizes = NETWORKS[name].full | ({"batch": options.batch} if options.batch else {})
            try:
                print(line(name, capture(NETWORKS[name], sizes, options.target, out, Path(folder))), flush=True)
            except (RuntimeError, memscale.ExportError) as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

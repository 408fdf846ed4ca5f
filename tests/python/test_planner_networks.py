"""The networks of the planner's benchmark, tiny: captured by its code, and trained to eager's bits at the lowest peak."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from training import memscalec

import memscale

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "planner"
sys.path.append(str(BENCHMARK))

import networks

SMALLEST = ["unroll_gan-512", "lstm-128", "treelstm-6"]


@pytest.mark.parametrize("name", SMALLEST)
def test_a_capture_is_a_problem(name: str, tmp_path: Path) -> None:
    network = networks.NETWORKS[name]
    row = networks.capture(network, network.tiny, "h200", tmp_path / "problem.json", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["problem.json"]
    problem = networks.read_problem(tmp_path / "problem.json")
    assert problem["format"] == "memscale.problem/1"
    assert 0 < problem["border"] < row["ops"] == len(problem["ops"])
    assert all(op["time_us"] > 0 for op in problem["ops"])
    assert row["eager_gib"] >= row["save_all_gib"] > sum(s["bytes"] for s in problem["storages"] if s.get("keep")) / 2**30


def test_a_large_problem_is_gzipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = networks.NETWORKS["treelstm-6"]
    monkeypatch.setattr(networks, "LARGE_BYTES", 0)
    row = networks.capture(network, network.tiny, "h200", tmp_path / "problem.json", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["problem.json.gz"]
    assert len(networks.read_problem(tmp_path / "problem.json")["ops"]) == row["ops"]


@pytest.mark.parametrize("form", ["torch.export", "torchscript"])
@pytest.mark.parametrize("name", SMALLEST)
def test_a_plan_at_the_lowest_peak_trains_to_the_same_bits(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin between tiny ops take seconds where cores are shared
    network = networks.NETWORKS[name]
    model, inputs = network.make(network.tiny)
    archive = memscale.export(model, inputs, tmp_path / "model.archive", format=form)
    shapes = {str(i): t for i, t in enumerate(inputs)} if form == "torchscript" else None
    planned = tmp_path / "model.ms.pt"
    report = memscale.compile(archive, planned, budget="min", target="cpu", optimizer="none", shape=shapes)
    assert report["peaks"]["planned_bytes"] < 0.8 * report["peaks"]["save_all_bytes"]
    verified = memscalec("verify", planned, "--against", archive, "--steps", 2)
    assert verified.returncode == 0, verified.stderr


def test_peak_of_save_all() -> None:
    """x 4 resident; a 10, last read by op 1; b 6 stays; op 1 needs 3 more: 4 + 10 + 6 + 3 = 23. Eager holds 20 more at op 0: 34."""
    problem = {
        "static_bytes": 0,
        "storages": [{"bytes": 4, "resident": True}, {"bytes": 10}, {"bytes": 6, "keep": True}, {"bytes": 1}],
        "ops": [
            {"inputs": [0], "outputs": [1]},
            {"inputs": [1], "outputs": [2], "workspace_bytes": 3},
            {"inputs": [2], "outputs": [3]},
        ],
        "eager_extra_bytes": [20, 0, 0],
    }
    assert networks.peak_bytes(problem) == 23
    assert networks.peak_bytes(problem, eager=True) == 34  # op 0: 4 + 10 + 20


def test_written_out_gradients_of_the_unrolled_gan_are_autograds() -> None:
    gan = networks.gan
    layers = [(torch.randn(o, i, requires_grad=True), torch.randn(o, requires_grad=True)) for i, o in ((2, 8), (8, 8), (8, 1))]
    points = torch.randn(16, 2)
    for target in (0.0, 1.0):
        logits = gan.discriminate(layers, points)[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))
        expected = torch.autograd.grad(loss, [t for layer in layers for t in layer])
        found = [t for layer in gan.gradients(layers, points, target) for t in layer]
        assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(found, expected, strict=True))


def test_every_network_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["networks.py", "--list"])
    assert networks.main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(networks.NETWORKS)
    assert all("batch" in n.full and "batch" in n.tiny for n in networks.NETWORKS.values())

"""memscalec answers wrong input with the right exit code and a message that helps, and leaves no half file."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from training import archive, memscalec

import memscale


def script(module: nn.Module, path: Path) -> Path:
    torch.jit.script(module).save(str(path))
    return path


class Plain(nn.Module):
    """The body of a test model: one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)


class NoScalar(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) > 0


class Frozen(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).sum()


class Branches(Plain):
    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        if y.sum() > 0:
            return y.sum()
        return y.mean()


class DataDependent(Plain):
    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return y[y > 0].sum()


class Unsupported(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return torch.quantize_per_tensor(self.linear(x), 0.1, 0, torch.quint8).dequantize().sum()


MLP_SHAPES = ["--shape", "x=256x32:float32", "--shape", "labels=256:int64"]
X = ["--shape", "x=4x4:float32"]


def check(result: subprocess.CompletedProcess[str], code: int, *fragments: str) -> None:
    assert result.returncode == code, f"exit {result.returncode}, expected {code}\n{result.stderr}"
    assert result.stdout == "" or code == 0
    for fragment in fragments:
        assert fragment.lower() in result.stderr.lower(), f"{fragment!r} is not in\n{result.stderr}"


def refused(out: Path, source: Path, code: int, *fragments: str, arguments: list[str] | None = None) -> None:
    """memscalec ends with `code`, says each fragment, and the output's folder holds nothing new."""
    before = sorted(out.parent.iterdir())
    check(memscalec(source, "-o", out, "--target", "cpu", *(arguments if arguments is not None else X)), code, *fragments)
    assert sorted(out.parent.iterdir()) == before


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "model.ms.pt"


def test_a_file_that_is_no_archive(out: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pt"
    bad.write_bytes(b"this is no zip archive " * 100)
    refused(out, bad, 4, "bad.pt", "torch.export.save")


def test_a_file_that_is_not_there(out: Path, tmp_path: Path) -> None:
    refused(out, tmp_path / "absent.pt", 2, "absent.pt")


@pytest.mark.parametrize("form", ["trace", "pt2"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_archive(form: str, part: float, out: Path, tmp_path: Path) -> None:
    whole = archive("mlp", form).read_bytes()
    bad = tmp_path / "bad.pt"
    bad.write_bytes(whole[: int(len(whole) * part)])
    refused(out, bad, 6, "bad.pt", arguments=MLP_SHAPES)


@pytest.mark.parametrize("form", ["trace", "pt2"])
def test_a_record_with_other_bytes(form: str, out: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pt"
    with zipfile.ZipFile(archive("mlp", form)) as source, zipfile.ZipFile(bad, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            target.writestr(entry.filename, b"\xff" * len(data) if entry.filename.endswith((".json", "data.pkl")) else data)
    refused(out, bad, 6, "bad.pt", arguments=MLP_SHAPES)


def test_no_archive_of_a_training_graph(out: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.pt"
    torch.save({"w": torch.zeros(3)}, weights)
    result = memscalec(weights, "-o", out, "--target", "cpu")
    assert result.returncode in (4, 6), result.stderr
    assert "torch.jit" in result.stderr or "torch.export" in result.stderr
    assert not out.exists()


def test_a_missing_shape(out: Path) -> None:
    refused(out, archive("mlp", "trace"), 2, "--shape", "labels", arguments=MLP_SHAPES[:2])


def test_a_wrong_shape(out: Path) -> None:
    wrong = ["--shape", "x=256x31:float32", "--shape", "labels=256:int64"]
    result = memscalec(archive("mlp", "trace"), "-o", out, "--target", "cpu", *wrong)
    assert result.returncode in (1, 2), result.stderr
    assert "31" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize("text", ["x", "x=", "x=4xq:float32", "x=4:floaty", "x=-4:float32", "x=4x4:float32:2"])
def test_a_shape_that_cannot_be_read(text: str, out: Path) -> None:
    refused(out, archive("mlp", "trace"), 2, "--shape", arguments=["--shape", text])


def test_a_shape_for_an_input_that_is_not_there(out: Path) -> None:
    refused(out, archive("mlp", "trace"), 2, "bogus", "labels", arguments=[*MLP_SHAPES, "--shape", "bogus=1:int64"])


@pytest.mark.parametrize(
    ("module", "code", "fragments"),
    [
        (NoScalar, 1, ["differentiable"]),
        (Frozen, 1, ["requires"]),
        (Branches, 4, ["test_cli.py"]),
        (DataDependent, 4, ["data", "test_cli.py"]),
        (Unsupported, 4, ["aten::quantize_per_tensor", "aten::dequantize.self"]),
    ],
)
def test_graphs_that_cannot_be_planned(module: type[nn.Module], code: int, fragments: list[str], out: Path, tmp_path: Path) -> None:
    refused(out, script(module(), tmp_path / "model.pt"), code, *fragments)


def test_an_output_that_is_no_scalar_needs_no_loss(out: Path, tmp_path: Path) -> None:
    class Vector(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x)

    result = memscalec(script(Vector(), tmp_path / "model.pt"), "-o", out, "--target", "cpu", *X)
    assert result.returncode in (0, 1), result.stderr
    if result.returncode == 1:
        assert "scalar" in result.stderr
        assert not out.exists()


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    result = memscalec(archive("mlp", "trace"), "-o", tmp_path / "no" / "such" / "folder" / "m.ms.pt", "--target", "cpu", *MLP_SHAPES)
    check(result, 2, "no/such/folder")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "m.ms.pt"
    folder.mkdir()
    check(memscalec(archive("mlp", "trace"), "-o", folder, "--target", "cpu", *MLP_SHAPES), 2, "m.ms.pt")
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []


def test_a_budget_that_nothing_meets(out: Path) -> None:
    refused(out, archive("gpt2", "pt2"), 3, "budget", arguments=["--budget", "1MiB"])


@pytest.mark.parametrize("budget", ["0.5", "x", "-1GiB", "12GB!", "0x", ""])
def test_a_budget_that_cannot_be_read(budget: str, out: Path) -> None:
    refused(out, archive("mlp", "pt2"), 2, "--budget", arguments=["--budget", budget])


def test_an_unknown_target(out: Path) -> None:
    check(memscalec(archive("mlp", "pt2"), "-o", out, "--target", "gpu9000"), 2, "gpu9000", "cpu")
    assert not out.exists()


def test_an_unknown_option(out: Path) -> None:
    check(memscalec(archive("mlp", "pt2"), "-o", out, "--budgt", "0.5x"), 2, "budgt")
    assert not out.exists()


def test_an_unknown_key_of_the_configuration(out: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("budgte: 0.5x\n")
    refused(out, archive("mlp", "pt2"), 2, "budgte", "budget", arguments=["--config", str(config)])


def test_an_unknown_optimizer(out: Path) -> None:
    refused(out, archive("mlp", "pt2"), 2, "adamwww", "adamw", arguments=["--optimizer", "adamwww"])


def test_the_same_input_gives_the_same_file(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.ms.pt", "b.ms.pt")]
    for path in paths:
        check(memscalec(archive("gpt2", "pt2"), "-o", path, "--target", "cpu", "--budget", "0.7x"), 0)
    with zipfile.ZipFile(paths[0]) as a, zipfile.ZipFile(paths[1]) as b:
        plans = [next(z.read(n) for n in z.namelist() if n.endswith("extra/memscale/plan.bin")) for z in (a, b)]
    assert plans[0] == plans[1]


def test_an_existing_output_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "m.ms.pt"
    path.write_bytes(b"old")
    assert memscalec(archive("gpt2", "pt2"), "-o", path, "--target", "cpu", "--budget", "1MiB").returncode == 3
    assert path.read_bytes() == b"old"
    check(memscalec(archive("gpt2", "pt2"), "-o", path, "--target", "cpu", "--budget", "0.7x"), 0)
    assert zipfile.is_zipfile(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.ms.pt"]


def test_the_report_is_json_with_the_peaks(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    check(memscalec(archive("gpt2", "pt2"), "-o", tmp_path / "m.ms.pt", "--target", "cpu", "--budget", "0.7x", "--report", report), 0)
    text = json.dumps(json.loads(report.read_text()))
    assert "peak" in text


def test_a_dry_run_writes_nothing(out: Path) -> None:
    check(memscalec(archive("gpt2", "pt2"), "-o", out, "--target", "cpu", "--budget", "0.7x", "--dry-run"), 0)
    assert not out.exists()


def test_inspect_and_verify_a_planned_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.ms.pt"
    check(memscalec(archive("gpt2", "pt2"), "-o", path, "--target", "cpu", "--budget", "0.7x"), 0)
    inspected = memscalec("inspect", path)
    check(inspected, 0)
    assert "peak" in inspected.stdout.lower()
    check(memscalec("verify", path), 0)


def test_help_fits_a_screen() -> None:
    for verb in ([], ["verify"], ["inspect"]):
        result = memscalec(*verb, "--help")
        check(result, 0)
        assert 5 < len(result.stdout.splitlines()) <= 60


def test_python_raises_one_exception_per_exit_code(tmp_path: Path) -> None:
    with pytest.raises(memscale.BudgetInfeasibleError, match="(?i)budget") as caught:
        memscale.compile(archive("gpt2", "pt2"), tmp_path / "m.ms.pt", target="cpu", budget="1MiB")
    assert caught.value.exit_code == 3
    assert caught.value.command[0] == str(memscale.compiler_path())
    with pytest.raises(memscale.UsageError):
        memscale.compile(archive("gpt2", "pt2"), tmp_path / "m.ms.pt", target="gpu9000")
    with pytest.raises(memscale.UnsupportedInputError):
        memscale.compile(Path(__file__), tmp_path / "m.ms.pt", target="cpu")
    (tmp_path / "cut.pt").write_bytes(archive("mlp", "pt2").read_bytes()[:-100])
    with pytest.raises(memscale.UnsafeInputError):
        memscale.compile(tmp_path / "cut.pt", tmp_path / "m.ms.pt", target="cpu")
    assert os.listdir(tmp_path) == ["cut.pt"]

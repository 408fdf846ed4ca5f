"""Models whose plan would once have been wrong in silence: each is exact now, or refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from training import same_bits

import memscale

ROWS = torch.randn(16, 32, generator=torch.Generator().manual_seed(1))


def compiled(model: nn.Module, inputs: tuple[Tensor, ...], folder: Path, form: str = "pt2") -> nn.Module:
    source = folder / "model.pt"
    if form == "pt2":
        torch.export.save(torch.export.export(model, inputs), source.with_suffix(".pt2"))
        source = source.with_suffix(".pt2")
    elif form == "script":
        torch.jit.script(model).save(str(source))
    else:
        memscale.export(model, inputs, source, format="torchscript")
    shape = [f"{i}={'x'.join(map(str, t.shape))}:{str(t.dtype).removeprefix('torch.')}" for i, t in enumerate(inputs)]
    memscale.compile(source, folder / "m.ms.pt", budget="1.0x", optimizer="none", shape=shape)
    return memscale.load(folder / "m.ms.pt")


def assert_equal_step(found: nn.Module, expected: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    losses = []
    for model in (found, expected):
        torch.manual_seed(5)
        losses.append(model(*(t.clone() for t in inputs)))
        losses[-1].backward()
    assert same_bits(*losses)
    for (name, a), (_, b) in zip(found.named_parameters(), expected.named_parameters(), strict=True):
        assert same_bits(a.grad, b.grad), name
    for (name, a), (_, b) in zip(found.named_buffers(), expected.named_buffers(), strict=True):
        assert same_bits(a, b), name


class Head(nn.Module):
    """One linear layer before what a test adds."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(32, 64)


class ScriptedLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(32, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0].square().mean()


class InAList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(32, 8))
        self.ws = [self.w]

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.ws[0]).square().mean()


@pytest.mark.parametrize("model", [ScriptedLSTM, InAList])
def test_parameters_reached_through_a_list_train(model: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    original = model()
    inputs = (torch.randn(4, 5, 32),)
    planned = compiled(original, inputs, tmp_path, "script")
    assert_equal_step(planned, original, inputs)
    original.zero_grad()
    planned.zero_grad()
    other = (torch.randn(3, 5, 32),)  # the original graph, on the same parameters
    with pytest.warns(memscale.FallBackWarning):
        assert_equal_step(planned, original, other)


class Conjugates(Head):
    def forward(self, x: Tensor) -> Tensor:
        h = self.head(x)
        z = torch.complex(h, h.cos())
        return torch.view_as_real((z.conj().resolve_conj() @ z.T.conj()).resolve_conj())[..., 0].square().mean()


class Mish(Head):
    def forward(self, x: Tensor) -> Tensor:
        return F.mish(self.head(x)).square().mean()


class Statistics(Head):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(64)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.head(x)).square().mean()


@pytest.mark.parametrize(("model", "form"), [(Conjugates, "pt2"), (Mish, "pt2"), (Statistics, "trace")])
def test_equal_to_eager(model: type[nn.Module], form: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    original = model()
    assert_equal_step(compiled(original, (ROWS,), tmp_path, form), original, (ROWS,))


class SharedWithBuffer(Head):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("twin", self.head.weight.detach())

    def forward(self, x: Tensor) -> Tensor:
        return (self.head(x) + F.linear(x, self.twin)).square().mean()


class OverlappingBuffers(Head):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.zeros(4, 64))
        self.register_buffer("row", self.whole[1])

    def forward(self, x: Tensor) -> Tensor:
        self.row.add_(1)
        return (self.head(x) * self.whole.sum(0)).square().mean()


class ScatteredNormal(Head):
    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros(16, 100)
        z[:, 3:67].normal_()
        return (self.head(x) + z[:, 3:67]).square().mean()


class Product(Head):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(x).sigmoid().cumprod(1).square().mean()


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0].square().mean()


class SparseRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(50, 16, sparse=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.rows(ids).square().mean()


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (SharedWithBuffer, (ROWS,), "share memory"),
        (OverlappingBuffers, (ROWS,), "forward writes 'row', which shares memory with 'whole'"),
        (ScatteredNormal, (ROWS,), "normal_"),
        (Product, (ROWS,), "cumprod"),
        (Gru, (torch.zeros(5, 4, 32),), "gru"),
        (SparseRows, (torch.zeros(4, 3, dtype=torch.long),), "sparse"),
    ],
)
def test_refused_by_name(model: type[nn.Module], inputs: tuple[Tensor, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(memscale.UnsupportedInputError, match=message):
        compiled(model(), inputs, tmp_path)


class WritesItsInput(Head):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(16, 32))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        self.mean.add_(x)
        return self.head(x * y + self.mean).square().mean()


def test_inputs_that_share_memory_run_the_original(tmp_path: Path) -> None:
    torch.manual_seed(0)
    original = WritesItsInput()
    planned = compiled(original, (ROWS.clone(), ROWS.clone()), tmp_path)
    results = []
    for model in (planned, original):
        with torch.no_grad():
            model.mean.zero_()
        x = ROWS.clone()
        if model is planned:
            with pytest.warns(memscale.FallBackWarning, match="share memory"):
                results.append(model(x, x))
        else:
            results.append(model(x, x))
    assert same_bits(results[0].detach(), results[1].detach())


def test_a_replaced_archive_is_noticed(tmp_path: Path) -> None:
    planned = compiled(Mish(), (ROWS,), tmp_path)
    (tmp_path / "other").mkdir()
    compiled(Statistics(), (ROWS,), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "m.ms.pt", tmp_path / "m.ms.pt")
    with pytest.warns(memscale.FallBackWarning), pytest.raises(memscale.ArchiveError, match="another model"):
        planned(ROWS[:4])

"""memscale.export: what it writes, what it leaves alone, what it warns of."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
import zoo
from torch import nn

import memscale


@pytest.mark.parametrize("format", ["torch.export", "torchscript"])
@pytest.mark.parametrize("name", ["gpt2", "resnet50", "lstm"])
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:The tensor attributes")
def test_the_archive_replays_and_the_model_is_left_alone(name: str, format: str, tmp_path: Path) -> None:
    model, inputs = zoo.make(name), zoo.ZOO[name].inputs(0)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    random_state = torch.get_rng_state()
    path = memscale.export(model, inputs, tmp_path / "model.pt2", format=format)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert model.training
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt2"]
    replay = torch.jit.load(str(path)) if format == "torchscript" else torch.export.load(str(path)).module()
    torch.manual_seed(3)
    expected = model(*inputs)
    torch.manual_seed(3)
    found = replay(*inputs)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@pytest.mark.filterwarnings("ignore:The tensor attributes")
def test_structure_only_archives_hold_no_weights(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(num_hidden_layers=2, hidden_size=1024, intermediate_size=2048, vocab_size=8000, num_attention_heads=8)
    with torch.device("meta"):
        model = zoo.CausalLM(LlamaForCausalLM(config)).train()
    parameter_bytes = sum(p.nbytes for p in model.parameters())
    path = memscale.export(model, (torch.zeros(2, 16, dtype=torch.int64),), tmp_path / "llama.pt2", structure_only=True)
    assert parameter_bytes > 100e6
    assert path.stat().st_size < 1e6
    with zipfile.ZipFile(path) as archive:
        graph = json.loads(archive.read(next(n for n in archive.namelist() if n.endswith("models/model.json"))))
    names = [s["parameter"]["parameter_name"] for s in graph["graph_module"]["signature"]["input_specs"] if "parameter" in s]
    assert names == [n for n, _ in model.named_parameters(remove_duplicate=False)]


def test_the_meta_twin_keeps_tying_and_takes_no_memory() -> None:
    from memscale._export import meta_twin

    model = zoo.make("gpt2")
    model.model.transformer.wpe.weight.requires_grad_(False)
    twin = meta_twin(model)
    assert twin.model.lm_head.weight is twin.model.transformer.wte.weight
    assert not twin.model.transformer.wpe.weight.requires_grad
    assert all(t.device.type == "meta" for t in [*twin.parameters(), *twin.buffers()])
    assert all(t.device.type == "cpu" for t in model.parameters())


class _Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # noqa: ANN001, ANN205
        return x * 2

    @staticmethod
    def backward(ctx, g):  # noqa: ANN001, ANN205
        return g * 3


class _Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Tripled.apply(self.linear(x)).sum()


def test_what_is_lost_is_named(tmp_path: Path) -> None:
    untouched = torch.autograd.Function.__dict__["apply"]
    model = _Odd()
    model.linear.register_full_backward_hook(lambda *_: None)
    model.linear.weight.register_hook(lambda g: g)
    with pytest.warns(memscale.ExportWarning) as caught:
        memscale.export(model, (torch.randn(2, 4),), tmp_path / "m.pt2")
    text = "\n".join(str(w.message) for w in caught)
    assert "module linear: backward hooks" in text
    assert "parameter linear.weight: hooks" in text
    assert "_Tripled" in text
    assert torch.autograd.Function.__dict__["apply"] is untouched


def test_nothing_lost_nothing_said(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", memscale.ExportWarning)
        memscale.export(zoo.make("mlp"), zoo.ZOO["mlp"].inputs(0), tmp_path / "m.pt2")


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum() if x.sum() > 0 else x.prod()

    with pytest.raises(memscale.ExportError, match="torch.export failed"):
        memscale.export(Branches(), (torch.ones(3),), tmp_path / "m.pt2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "onnx"}, "format must be"),
        ({"format": "torchscript", "structure_only": True}, "always carries weights"),
        ({"format": "torchscript", "kwargs": {"x": 1}}, "positional arguments"),
    ],
)
def test_options_that_do_not_go_together(options: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        memscale.export(zoo.make("mlp"), zoo.ZOO["mlp"].inputs(0), tmp_path / "m.pt2", **options)

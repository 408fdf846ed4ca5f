"""Writes the archives that the import tests read: `make_archives.py FOLDER`.

For each model, NAME.pt2 (or NAME.pt) and NAME.expected.pt: inputs, outputs, gradients and buffers of two training steps of the
exported program's own module(). `exact.txt` lists the models that are compared bit for bit.
"""

import collections
import pickle
import sys
import warnings
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple  # TorchScript reads these spellings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))
import zoo  # noqa: E402


class Tied(nn.Module):
    """Tied weights, batch norm, dropout, a plain tensor attribute, a non-persistent buffer, a dict of nested outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.emb.weight
        self.bn = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.register_buffer("offsets", torch.arange(3.0), persistent=False)
        self.register_buffer("count", torch.zeros(()))
        self.scale = torch.full((3,), 1.5)

    def forward(self, x: Tensor, *, extra: Tensor | None = None, flag: bool = True) -> dict:
        self.count += 1
        h = self.bn(self.emb(x).transpose(1, 2)).transpose(1, 2)
        with torch.no_grad():
            shift = h.sum() * 2
        y = self.head(self.drop(h))
        return {"loss": y.mean() + shift + (self.scale * self.offsets).sum(), "parts": (y, None, [h, 3])}


class AutocastBlocks(nn.Module):
    """Regions of autocast, nested and switched off, over ops of every cast policy of the cpu."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 8)
        self.conv = nn.Conv1d(3, 3, 3, padding=1)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            h = F.gelu(self.a(x))
            h = torch.cat([h, x.repeat(1, 1, 2)], dim=0)
            h = self.b(F.dropout(h, 0.2, True))
            with torch.autocast("cpu", enabled=False):
                h = self.norm(h.float()) @ torch.ones(8, 8)
            h = self.conv(h)
            loss = F.mse_loss(h, torch.zeros_like(h))
        return loss + (h * h).sum()


class Kitchen(nn.Module):
    """Scalars, lists, optional tensors, several results, views, in-place ops, comparisons, constants."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, 24).reshape(4, 6))

    def forward(self, x: Tensor, mask: Tensor) -> tuple:
        y = x * self.w * 2 + 1
        y = y / 3 - 2 ** (self.w * 0.1) + (y**2) * 0.5 - (1 - y)
        a, b = y.split([2, 4], dim=1)
        c, d, e = torch.unbind(y[:3])
        values, places = y.topk(3, dim=-1)
        top, _ = y.max(dim=1)
        z = y.masked_fill(mask, 0.25) + torch.where(mask, y, 0.5)
        full = torch.full((4, 6), True) & mask
        z = z + full.float() + torch.full((4, 6), float("-inf")).exp()
        z[:, 1:3] = 0.125
        picked = y[places[:, 0], torch.arange(4)] if y.shape[0] == 4 else y
        norm = F.layer_norm(z, [6])
        ones = torch.ones(3, dtype=torch.float64).to(torch.float32)
        s = torch.stack([c, d, e]).std(dim=1) + ones + torch.tensor([1.0, 2.0, 3.0])
        p = F.pad(b.unsqueeze(0), (1, 1), mode="constant", value=0.5)
        i = F.interpolate(p.unsqueeze(0), scale_factor=2.0, mode="bilinear", align_corners=False)
        q = F.softmax(z, -1, dtype=torch.float64).to(x.dtype)
        r = torch.einsum("ij,kj->ik", z, self.w) + z.flatten().clamp(min=-1).cumsum(0).sum()
        noise = torch.randn(4, 6) * torch.rand_like(x) + torch.bernoulli(torch.full_like(x, 0.5))
        return (a.sum() + values.sum() + top.sum() + norm.sum() * s.mean() + i.mean() + r.sum() + (q * noise).sum(), picked, p.relu_())


class Pools(nn.Module):
    """Convolutions and pooling in channels-last memory, instance and group norm, a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 4, 3, stride=2, padding=1).to(memory_format=torch.channels_last)
        self.g = nn.GroupNorm(2, 4)
        self.i = nn.InstanceNorm2d(4, affine=True)
        self.r = nn.GRU(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = F.silu(self.g(self.c(x.contiguous(memory_format=torch.channels_last))))
        h = F.avg_pool2d(F.max_pool2d(self.i(h), 2), 2)
        h = F.adaptive_avg_pool2d(h, (2, 2))
        return self.r(h.flatten(2).transpose(1, 2))[0].sum()


class Mutating(nn.Module):
    """Writes to an input and to a buffer, through a view too."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(2, 3))

    def forward(self, x: Tensor, cache: Tensor) -> Tensor:
        y = self.l(x)
        with torch.no_grad():
            self.seen[0].add_(y[0].detach())
            cache.mul_(2)
        return y.sum() * cache.sum()


class Averaging(nn.Module):
    """A running average in a buffer: after decomposition its new value is an output of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(144, 5))
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        return F.cross_entropy(y, torch.zeros(2, dtype=torch.long))


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


class Containers(nn.Module):
    """Nested inputs, a named tuple and an ordered dict of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, batch: dict, pairs: tuple, *, scale: float = 2.0) -> Pair:
        h = self.l(batch["x"]) * batch["w"] + pairs[0][0] + pairs[1] * scale
        return Pair(h.sum(), collections.OrderedDict(a=h, b=h * 2))


class Dynamic(nn.Module):
    """A symbolic batch size that takes part in the arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        y = self.l(x).reshape(n * 2, 3)[:n]
        return y.sum() / n + torch.zeros(n, n).sum()


class Opaque(nn.Module):
    """Control flow on data: a higher-order op that is not read."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)).sum()


class Aliases(nn.Module):
    """A parameter and a buffer that is a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("part", self.w.detach()[1:3])

    def forward(self, x: Tensor) -> Tensor:
        return (self.w * x).sum() + self.part.sum()


class Script(nn.Module):
    """Inputs of every TorchScript type that is read."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.note = torch.ones(2)

    def forward(self, x: Tensor, m: Optional[Tensor], pair: Tuple[Tensor, Tensor], more: List[Tensor], table: Dict[str, Tensor],
                p: float = 0.5, n: int = 3, flag: bool = True, mode: str = "sum", late: Optional[Tensor] = None) -> Tensor:
        y = self.l(x) * p + pair[0] - pair[1]
        if m is not None:
            y = y + m
        for t in more:
            y = y * t
        return y.sum() + self.note.sum()


class Expected(nn.Module):
    """Carries tensors to the C++ tests."""

    names: List[str]
    tensors: List[Tensor]

    def __init__(self, items: dict[str, Tensor]) -> None:
        super().__init__()
        self.names = list(items)
        self.tensors = [t.detach().clone() for t in items.values()]

    def forward(self) -> int:
        return 0


def leaves(output: object) -> list[Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, Tensor)]


def expect(path: Path, args: tuple, kwargs: dict, folder: Path, name: str) -> None:
    """Two training steps of the archive's own module()."""
    module = torch.export.load(str(path)).module()
    items: dict[str, Tensor] = {}
    for i, t in enumerate(leaves((args, kwargs))):
        items[f"in.{i}"] = t
    for step in range(2):
        torch.manual_seed(7 + step)
        step_args, step_kwargs = torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, (args, kwargs))
        outputs = leaves(module(*step_args, **step_kwargs))
        for i, t in enumerate(leaves((step_args, step_kwargs))):
            items[f"{step}.after.{i}"] = t
        for i, t in enumerate(outputs):
            items[f"{step}.out.{i}"] = t
        grad_outputs = [t for t in outputs if t.requires_grad]
        parameters = {n: p for n, p in module.named_parameters(remove_duplicate=False) if p.requires_grad}
        total = sum(t.double().sum() for t in grad_outputs)
        for (n, _), g in zip(parameters.items(), torch.autograd.grad(total, list(parameters.values()), allow_unused=True)):
            if g is not None:
                items[f"{step}.grad.{n}"] = g
        for n, b in module.named_buffers():
            items[f"{step}.buffer.{n}"] = b.clone()  # the next step writes to it
    torch.jit.script(Expected(items)).save(str(folder / f"{name}.expected.pt"))


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    exact: list[str] = []

    def export(name: str, model: nn.Module, args: tuple, kwargs: dict | None = None, compare: bool = True, decompose: bool = False, **options) -> None:
        program = torch.export.export(model.train(), args, kwargs, strict=False, **options)
        if decompose:
            program = program.run_decompositions()
        path = folder / f"{name}.pt2"
        torch.export.save(program, str(path))
        if compare:
            expect(path, args, kwargs or {}, folder, name)
            exact.append(name)

    ids = torch.arange(6).reshape(2, 3)
    export("tied", Tied(), (ids,), {"extra": None, "flag": False})
    export("core", Averaging(), (torch.randn(2, 3, 8, 8),), decompose=True)
    export("autocast", AutocastBlocks(), (torch.randn(2, 3, 8),))
    export("kitchen", Kitchen(), (torch.randn(4, 6), torch.rand(4, 6) > 0.5))
    export("pools", Pools(), (torch.randn(2, 3, 32, 32),))
    export("mutating", Mutating(), (torch.randn(2, 3), torch.ones(2)))
    torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="make_archives.Pair")
    batch = {"x": torch.randn(2, 3), "w": torch.ones(3)}
    export("containers", Containers(), (batch, ((torch.ones(3),), torch.ones(2, 3))), {"scale": 2.0})
    export("dynamic", Dynamic(), (torch.randn(4, 6),), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2, max=64)}})
    for name, inputs in (("gpt2", 2), ("llama", 2), ("bert", 2), ("resnet50", 2), ("vit", 2), ("lstm", 2)):
        entry = zoo.ZOO[name]
        args = tuple(t[:inputs] for t in entry.inputs(0))
        export(name, zoo.make(name), args)

    from transformers import GPT2Config, GPT2LMHeadModel

    tiny = GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=32, n_positions=16, bos_token_id=0, eos_token_id=0, use_cache=False)
    export("model_output", GPT2LMHeadModel(tiny), (), {"input_ids": ids, "labels": ids})

    with torch.device("meta"):
        export("structure_only", GPT2LMHeadModel(tiny), (), {"input_ids": ids.to("meta"), "labels": ids.to("meta")}, compare=False)
        export("structure_only_autocast", AutocastBlocks(), (torch.randn(2, 3, 8),), compare=False)
    export("cond", Opaque(), (torch.randn(3),), compare=False)
    export("aliases", Aliases(), (torch.ones(4),), compare=False)

    torch.jit.trace(zoo.MLP(), zoo.ZOO["mlp"].inputs(0), check_trace=False).save(str(folder / "traced.pt"))
    tied = Tied()
    trace_me = nn.Sequential(tied.emb, tied.head)
    torch.jit.trace(trace_me, (ids,)).save(str(folder / "traced_tied.pt"))
    torch.jit.script(Script()).save(str(folder / "scripted.pt"))
    torch.save(tied.state_dict(), folder / "state_dict.pt")
    torch.save(tied, folder / "module.pt")
    torch.save(tied.state_dict(), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    (folder / "pickle.pt").write_bytes(pickle.dumps({"a": 1}))
    torch.jit.script(Script()).save(str(folder / "compiled.ms.pt"), _extra_files={"memscale/plan.bin": b"MSPL"})
    (folder / "exact.txt").write_text("".join(f"{n}\n" for n in exact))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

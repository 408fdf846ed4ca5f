"""The model zoo: small models with random weights, dropout on, each returning (loss, logits), and their exporters.

Needs transformers and torchvision. Sizes are chosen so that activations are most of a step's memory and a step takes well under a
second on two cores.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "python"))

@dataclasses.dataclass(frozen=True)
class Entry:
    """One model: `build()` makes it in training mode, `inputs(step)` makes the arguments of forward for a step."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]
    input_names: tuple[str, ...]

    def shapes(self) -> list[str]:
        """The `--shape` arguments of memscalec, one per input: `ids=8x64:int64`."""
        return shape_arguments(self.input_names, self.inputs(0))


def shape_arguments(names: tuple[str, ...], inputs: tuple[Tensor, ...]) -> list[str]:
    """`--shape` arguments for inputs given by name."""
    return [f"{n}={'x'.join(map(str, t.shape))}:{str(t.dtype).removeprefix('torch.')}" for n, t in zip(names, inputs)]


def _generator(step: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + step)


def _ids(step: int, batch: int, seq: int, vocab: int) -> Tensor:
    return torch.randint(1, vocab, (batch, seq), generator=_generator(step))


class CausalLM(nn.Module):
    """A transformers causal language model whose forward(ids) returns (loss, logits)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(input_ids=ids, use_cache=False).logits
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))
        return loss, logits


def gpt2() -> nn.Module:
    """GPT-2: tied embeddings, tanh-GELU, dropout everywhere."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=4, n_embd=64, n_head=4, vocab_size=256, n_positions=64, bos_token_id=0, eos_token_id=0)
    return CausalLM(GPT2LMHeadModel(config)).train()


def llama() -> nn.Module:
    """Llama: grouped-query attention, rotary embeddings, a non-persistent buffer, attention dropout."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        num_hidden_layers=4, hidden_size=64, intermediate_size=176, num_attention_heads=8, num_key_value_heads=2,
        vocab_size=256, max_position_embeddings=64, attention_dropout=0.1,
    )
    return CausalLM(LlamaForCausalLM(config)).train()


class MaskedLM(nn.Module):
    """BERT with its masked-language-model head (tied decoder); forward(ids, labels) returns (loss, logits)."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(
            num_hidden_layers=4, hidden_size=64, intermediate_size=256, num_attention_heads=4, vocab_size=256,
            max_position_embeddings=64,
        )
        self.bert = BertForMaskedLM(config)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        output = self.bert(input_ids=ids, labels=labels)
        return output.loss, output.logits


class Classifier(nn.Module):
    """A model of images with a cross-entropy loss; forward(images, labels) returns (loss, logits)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(images)
        return F.cross_entropy(logits, labels), logits


def resnet50() -> nn.Module:
    """ResNet-50's layers at a quarter of its width: batch norm in training mode writes running statistics; ten classes."""
    from torchvision.models.resnet import Bottleneck, ResNet

    class Narrow(ResNet):
        def _make_layer(self, block, planes, blocks, stride=1, dilate=False):  # noqa: ANN001, ANN202
            return super()._make_layer(block, planes // 4, blocks, stride=stride, dilate=dilate)

    model = Narrow(Bottleneck, [3, 4, 6, 3])
    model.fc = nn.Linear(128 * Bottleneck.expansion, 10)
    return Classifier(model).train()


def resnet50_full() -> nn.Module:
    """torchvision's ResNet-50 with ten classes, in training mode."""
    import torchvision

    return Classifier(torchvision.models.resnet50(num_classes=10)).train()


def vit() -> nn.Module:
    """A small vision transformer with dropout."""
    import torchvision

    model = torchvision.models.VisionTransformer(
        image_size=32, patch_size=4, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, dropout=0.1,
        attention_dropout=0.1, num_classes=10,
    )
    nn.init.normal_(model.heads[-1].weight, std=0.02)  # torchvision starts it at zero: no gradient would pass
    return Classifier(model).train()


class LSTMClassifier(nn.Module):
    """Embedding, a two-layer bidirectional LSTM with dropout, mean over time, a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 32)
        self.lstm = nn.LSTM(32, 48, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(96, 5)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.lstm(self.embedding(ids))
        logits = self.head(self.dropout(states.mean(dim=1)))
        return F.cross_entropy(logits, labels), logits


def minilm() -> nn.Module:
    """The sentence encoder of the demo, with its real weights and contrastive loss."""
    from minilm import MiniLM

    return MiniLM().train()


def _minilm_inputs(step: int) -> tuple[Tensor, ...]:
    generator = _generator(step)
    sides = []
    for _ in range(2):
        ids = torch.randint(1000, 30000, (16, 64), generator=generator)
        length = torch.randint(8, 65, (16, 1), generator=generator)
        mask = (torch.arange(64) < length).long()
        sides += [ids * mask, mask]
    return tuple(sides)


class MLP(nn.Module):
    """Three linear layers with ReLU and dropout."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(32, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, 10)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        x = self.dropout(F.relu(self.first(x)))
        x = self.dropout(F.relu(self.second(x)))
        logits = self.third(x)
        return F.cross_entropy(logits, labels), logits


def _images(step: int, batch: int, size: int, classes: int = 10) -> tuple[Tensor, Tensor]:
    generator = _generator(step)
    return torch.randn(batch, 3, size, size, generator=generator), torch.randint(0, classes, (batch,), generator=generator)


def _masked(step: int) -> tuple[Tensor, Tensor]:
    ids = _ids(step, 8, 64, 256)
    masked = torch.rand(ids.shape, generator=_generator(step)) < 0.15
    return torch.where(masked, 3, ids), torch.where(masked, ids, -100)


def _labelled(step: int) -> tuple[Tensor, Tensor]:
    return _ids(step, 16, 24, 256), torch.randint(0, 5, (16,), generator=_generator(step))


def _rows(step: int) -> tuple[Tensor, Tensor]:
    generator = _generator(step)
    return torch.randn(256, 32, generator=generator), torch.randint(0, 10, (256,), generator=generator)


class Shared(nn.Module):
    """One transformer block used four times (as ALBERT does): autograd adds four gradients to each of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 64)
        self.block = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
        self.register_buffer("scale", torch.full((1,), 0.5))
        self.head = nn.Linear(64, 256, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(ids)
        for _ in range(4):
            x = self.block(x * self.scale)
        logits = self.head(x)
        return F.cross_entropy(logits[:, :-1].reshape(-1, 256), ids[:, 1:].reshape(-1)), logits


ZOO: dict[str, Entry] = {
    e.name: e
    for e in (
        Entry("mlp", lambda: MLP().train(), _rows, ("x", "labels")),
        Entry("gpt2", gpt2, lambda step: (_ids(step, 8, 64, 256),), ("ids",)),
        Entry("bert", lambda: MaskedLM().train(), _masked, ("ids", "labels")),
        Entry("llama", llama, lambda step: (_ids(step, 8, 64, 256),), ("ids",)),
        Entry("resnet50", resnet50, lambda step: _images(step, 32, 64), ("images", "labels")),
        Entry("vit", vit, lambda step: _images(step, 8, 32), ("images", "labels")),
        Entry("lstm", lambda: LSTMClassifier().train(), _labelled, ("ids", "labels")),
        Entry("shared", lambda: Shared().train(), lambda step: (_ids(step, 8, 64, 256),), ("ids",)),
        Entry("minilm", minilm, _minilm_inputs, ("first", "first_mask", "rest", "rest_mask")),
    )
}


def make(name: str, seed: int = 0) -> nn.Module:
    """Builds a model of the zoo with reproducible weights."""
    torch.manual_seed(seed)
    return ZOO[name].build()


def export_trace(model: nn.Module, inputs: tuple[Tensor, ...], path: str | Path) -> Path:
    """Writes a traced TorchScript archive; `model` keeps its mode and its buffers' values."""
    path = Path(path)
    buffers = [b.clone() for b in model.buffers()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, inputs, check_trace=False)
    with torch.no_grad():
        for buffer, value in zip(model.buffers(), buffers):
            buffer.copy_(value)  # tracing runs the model: batch norm's statistics moved
        traced.save(str(path))
    return path


def export_pt2(model: nn.Module, inputs: tuple[Tensor, ...], path: str | Path) -> Path:
    """Writes a torch.export archive of the training-mode forward graph."""
    path = Path(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(model, inputs, strict=False), str(path))
    return path


FORMATS: dict[str, tuple[str, Callable[[nn.Module, tuple[Tensor, ...], Path], Path]]] = {
    "trace": (".pt", export_trace),
    "pt2": (".pt2", export_pt2),
}

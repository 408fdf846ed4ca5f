"""The models of the device check: GPT-2 small and ResNet-50 with random weights, each returning a loss.

GPT-2 is written out here so that its attention takes the causal path in eager and in export alike (transformers' own looks at mask values
and takes another path while exporting).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(b, t, c)), self.dropout, True)
        z = self.up(self.ln_2(x))
        z = 0.5 * z * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (z + 0.044715 * torch.pow(z, 3.0))))
        return x + F.dropout(self.down(z), self.dropout, True)


class GPT2(nn.Module):
    """GPT-2's public configuration: 12 layers of width 768, tied embeddings, tanh-GELU written out as in the original."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, vocabulary: int = 50257, context: int = 1024, dropout: float = 0.1) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        self.dropout = dropout
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.dropout, True)
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from torchvision.models import resnet50

        self.model = resnet50()

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.model(images), labels)


def gpt2_inputs(dtype: torch.dtype, device: str, step: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(step)
    return (torch.randint(0, 50257, (8, 512), generator=generator).to(device),)


def resnet50_inputs(dtype: torch.dtype, device: str, step: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(step)
    images = torch.randn((32, 3, 224, 224), generator=generator)
    return images.to(device, dtype), torch.randint(0, 1000, (32,), generator=generator).to(device)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[..., tuple[Tensor, ...]]]] = {
    "gpt2": (GPT2, gpt2_inputs),
    "resnet50": (ResNet50, resnet50_inputs),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

"""Transformers: the original one, GPT-2, BERT and Llama. Only the original has dropout: the others are as measured on an H200."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """In float32, the last position ignored: as transformers does it."""
    return token_loss(logits.float(), F.pad(ids, (0, 1), value=-100)[:, 1:])


def split_heads(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class Attention(nn.Module):
    """Vaswani et al. 2017: scores, mask, softmax and dropout as tensors of their own."""

    def __init__(self, width: int, heads: int, dropout: float, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        q, k, v = (split_heads(y, self.heads) for y in (self.q(x), self.k(memory), self.v(memory)))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        if self.causal:
            later = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return self.out(join_heads(F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training) @ v))


class OriginalLayer(nn.Module):
    """Encoder layer, or decoder layer if `memory` is given; the norm after the sum."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, decoder: bool) -> None:
        super().__init__()
        self.own = Attention(width, heads, dropout, causal=decoder)
        self.cross = Attention(width, heads, dropout) if decoder else None
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if decoder else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.dropout(self.own(x, x)))
        if self.cross is not None:
            x = self.norms[1](x + self.dropout(self.cross(x, memory)))
        return self.norms[-1](x + self.dropout(self.down(self.dropout(F.relu(self.up(x))))))


class Transformer(nn.Module):
    """Vaswani et al. 2017, base: one table of tokens for both sides and the output."""

    def __init__(self, layers: int, width: int, heads: int, inner: int, vocabulary: int, length: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        positions, rates = torch.arange(length)[:, None], torch.exp(torch.arange(0, width, 2) * (-math.log(10000) / width))
        self.register_buffer("positions", torch.stack([(positions * rates).sin(), (positions * rates).cos()], 2).flatten(1))
        self.encoder = nn.ModuleList(OriginalLayer(width, heads, inner, dropout, False) for _ in range(layers))
        self.decoder = nn.ModuleList(OriginalLayer(width, heads, inner, dropout, True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        memory, x = self.embed(source), self.embed(target)
        for layer in self.encoder:
            memory = layer(memory)
        for layer in self.decoder:
            x = layer(x, memory)
        return token_loss(F.linear(x, self.tokens.weight), labels)


def transformer(batch: int, length: int, layers: int = 6, width: int = 512, heads: int = 8, vocabulary: int = 37000) -> Made:
    model = Transformer(layers, width, heads, 4 * width, vocabulary, length, 0.1)
    return model, tuple(torch.randint(0, vocabulary, (batch, length)) for _ in range(3))


class GPT2Block(nn.Module):
    """Norm before the layers; GELU by tanh, written out as in the original."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(y, self.heads) for y in self.qkv(self.ln_1(x)).split(x.shape[2], dim=2))
        x = x + self.proj(join_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        z = self.up(self.ln_2(x))
        return x + self.down(0.5 * z * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (z + 0.044715 * torch.pow(z, 3.0)))))


class GPT2(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(GPT2Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return next_token_loss(F.linear(self.ln_f(x), self.wte.weight), ids)


def gpt2(
    batch: int, length: int, layers: int = 48, width: int = 1600, heads: int = 25, vocabulary: int = 50257,
    dtype: torch.dtype = torch.bfloat16,
) -> Made:
    """GPT-2 XL by default."""
    return GPT2(layers, width, heads, vocabulary, length).to(dtype), (torch.randint(0, vocabulary, (batch, length)),)


class BERTLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        y = F.scaled_dot_product_attention(*(split_heads(linear(x), self.heads) for linear in (self.q, self.k, self.v)))
        x = self.norm_1(self.out(join_heads(y)) + x)
        return self.norm_2(self.down(F.gelu(self.up(x))) + x)


class BERT(nn.Module):
    """With its masked-language-model head, the decoder tied to the table of tokens."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions, self.kinds = (nn.Embedding(n, width) for n in (vocabulary, length, 2))
        self.norm, self.head_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(BERTLayer(width, heads) for _ in range(layers))
        self.head, self.bias = nn.Linear(width, width), nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        positions = self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = self.norm(self.tokens(ids) + self.kinds(torch.zeros_like(ids)) + positions)
        for layer in self.layers:
            x = layer(x)
        x = self.head_norm(F.gelu(self.head(x)))
        return token_loss(F.linear(x, self.tokens.weight, self.bias), labels)


def bert(
    batch: int, length: int, layers: int = 24, width: int = 1024, heads: int = 16, vocabulary: int = 30522,
    dtype: torch.dtype = torch.bfloat16,
) -> Made:
    """BERT-Large by default."""
    ids = (torch.randint(0, vocabulary, (batch, length)), torch.randint(0, vocabulary, (batch, length)))
    return BERT(layers, width, heads, vocabulary, length).to(dtype), ids


class RMSNorm(nn.Module):
    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * y.to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class LlamaBlock(nn.Module):
    """Grouped-query attention with rotary positions, SwiGLU."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.norm_1, self.norm_2 = RMSNorm(width), RMSNorm(width)
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, groups * size, bias=False), nn.Linear(width, groups * size, bias=False)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        y = self.norm_1(x)
        q, k = rotate(split_heads(self.q(y), self.heads), cos, sin), rotate(split_heads(self.k(y), self.groups), cos, sin)
        v = split_heads(self.v(y), self.groups)
        x = x + self.out(join_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, groups: int, inner: int, vocabulary: int, base: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, groups, inner) for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        self.register_buffer("rates", base ** (-torch.arange(0, size, 2) / size), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * self.rates.float()
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return next_token_loss(self.head(self.norm(x)), ids)


def llama(
    batch: int, length: int, layers: int = 32, width: int = 4096, heads: int = 32, groups: int = 8, inner: int = 14336,
    vocabulary: int = 128256, dtype: torch.dtype = torch.bfloat16,
) -> Made:
    """Llama-3-8B by default."""
    model = Llama(layers, width, heads, groups, inner, vocabulary, 500000.0).to(dtype)
    return model, (torch.randint(0, vocabulary, (batch, length)),)

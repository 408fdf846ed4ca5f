"""Unrolled GAN (Metz et al. 2017) on two-dimensional points: the generator's step through some steps of the discriminator.

The discriminator's gradients are written out, since torch's exporters refuse a gradient taken inside the forward pass where an op's
backward reads the op's own output, as tanh's and ReLU's do. Tanh layers, a logistic loss, plain gradient steps; the generator's
gradient goes through all of them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]
Layers = list[tuple[Tensor, Tensor]]


def discriminate(layers: Layers, x: Tensor) -> list[Tensor]:
    """What each layer puts out; the last is one logit per point."""
    outputs = []
    for n, (weight, bias) in enumerate(layers):
        x = F.linear(x, weight, bias)
        if n + 1 < len(layers):
            x = torch.tanh(x)
        outputs.append(x)
    return outputs


def gradients(layers: Layers, x: Tensor, target: float) -> Layers:
    """Of the mean logistic loss against `target`, with respect to every weight and bias."""
    outputs = [x, *discriminate(layers, x)]
    grad = (torch.sigmoid(outputs[-1]) - target) / x.shape[0]
    found = []
    for n in reversed(range(len(layers))):
        found.append((grad.t() @ outputs[n], grad.sum(0)))
        if n:
            grad = (grad @ layers[n][0]) * (1 - outputs[n] * outputs[n])
    return found[::-1]


class UnrolledGAN(nn.Module):
    """The generator's loss against the discriminator as it will be after `steps` steps. The discriminator is not trained here."""

    def __init__(self, noise: int, hidden: int, steps: int, rate: float) -> None:
        super().__init__()
        self.steps, self.rate = steps, rate
        self.generator = nn.Sequential(
            nn.Linear(noise, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )
        self.discriminator = nn.ModuleList([nn.Linear(2, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)])
        self.discriminator.requires_grad_(False)

    def forward(self, noise: Tensor, real: Tensor) -> Tensor:
        fake = self.generator(noise)
        layers = [(layer.weight, layer.bias) for layer in self.discriminator]
        for _ in range(self.steps):
            both = zip(layers, gradients(layers, real, 1.0), gradients(layers, fake, 0.0))
            layers = [(w - self.rate * (rw + fw), b - self.rate * (rb + fb)) for (w, b), (rw, rb), (fw, fb) in both]
        return F.softplus(-discriminate(layers, fake)[-1]).mean()


def unrolled_gan(batch: int, noise: int = 256, hidden: int = 128, steps: int = 10, rate: float = 0.01) -> Made:
    return UnrolledGAN(noise, hidden, steps, rate), (torch.randn(batch, noise), torch.randn(batch, 2))

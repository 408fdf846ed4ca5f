"""Convolutional networks: ResNet for CIFAR, U-Net in two and three dimensions, Inception v4, and three of torchvision.

Sizes follow the papers. `width` scales channels down for tests.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]
CONV = {2: nn.Conv2d, 3: nn.Conv3d}
NORM = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class Unit(nn.Module):
    """Convolution, batch norm, ReLU. Without a padding the image keeps its size at stride 1."""

    def __init__(
        self, cin: int, cout: int, kernel: int | tuple[int, ...] = 3, stride: int = 1, padding: str | int = "same", dims: int = 2
    ) -> None:
        super().__init__()
        if padding == "same":
            padding = kernel // 2 if isinstance(kernel, int) else tuple(k // 2 for k in kernel)
        self.conv = CONV[dims](cin, cout, kernel, stride, padding, bias=False)
        self.norm = NORM[dims](cout)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class Classifier(nn.Module):
    """Cross-entropy over a network's logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        logits = self.model(images)
        return F.cross_entropy(logits, labels)


def classified(model: nn.Module, batch: int, size: int, classes: int) -> Made:
    return Classifier(model), (torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,)))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut without parameters (He et al. 2016, option A)."""

    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.stride, self.more = stride, cout - cin
        self.first = Unit(cin, cout, 3, stride)
        self.second, self.norm = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.second(self.first(x)))
        if self.stride != 1 or self.more:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return F.relu(y + x)


def resnet_cifar(depth: int, batch: int, size: int = 32, width: int = 16) -> Made:
    """He et al. 2016, section 4.2: 6n+2 layers, three stages of 16, 32 and 64 channels."""
    blocks, channels = [], width
    for stage, cout in enumerate((width, 2 * width, 4 * width)):
        for block in range((depth - 2) // 6):
            blocks.append(BasicBlock(channels, cout, 2 if stage and not block else 1))
            channels = cout
    body = [Unit(3, width), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return classified(nn.Sequential(*body), batch, size, 10)


class UNet(nn.Module):
    """Ronneberger et al. 2015 and Çiçek et al. 2016, with padded convolutions and batch norm; a loss per pixel.

    In two dimensions the way up is bilinear, as in the network that DTR traced: the lowest level is no wider than the one above it.
    In three it is a transposed convolution, and channels double before a pooling.
    """

    def __init__(self, width: int, levels: int, cin: int, classes: int, dims: int) -> None:
        super().__init__()
        flat = dims == 2
        self.pool = F.max_pool2d if flat else F.max_pool3d
        self.down, self.up, self.merge = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        skips = [width << level for level in range(levels)]
        if flat:
            skips[-1] = skips[-2]
        for c in skips:
            middle = c if flat else c // 2
            self.down.append(nn.Sequential(Unit(cin, middle, dims=dims), Unit(middle, c, dims=dims)))
            cin = c
        for level in reversed(range(levels - 1)):
            cout = skips[max(level - 1, 0)] if flat else skips[level]
            bilinear = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.up.append(bilinear if flat else nn.ConvTranspose3d(cin, cin, 2, 2))
            self.merge.append(nn.Sequential(Unit(cin + skips[level], cout, dims=dims), Unit(cout, cout, dims=dims)))
            cin = cout
        self.head = CONV[dims](cin, classes, 1)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x, skips = images, []
        for i, block in enumerate(self.down):
            x = block(self.pool(x, 2) if i else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return F.cross_entropy(self.head(x), labels)


def unet(batch: int, size: tuple[int, ...], width: int = 64, classes: int = 2, cin: int = 3, levels: int = 5) -> Made:
    """U-Net over images of two or three dimensions."""
    model = UNet(width, levels, cin, classes, len(size))
    return model, (torch.randn(batch, cin, *size), torch.randint(0, classes, (batch, *size)))


class Branches(nn.Module):
    """Inception: every branch sees the input, channels are joined."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def _chain(cin: int, *steps: tuple) -> nn.Sequential:
    """(channels, kernel[, stride[, padding]]) one after the other; "avg" and "max" are poolings."""
    layers: list[nn.Module] = []
    for step in steps:
        if step[0] == "avg":
            layers.append(nn.AvgPool2d(3, 1, 1, count_include_pad=False))
        elif step[0] == "max":
            layers.append(nn.MaxPool2d(3, 2))
        else:
            layers.append(Unit(cin, *step))
            cin = step[0]
    return nn.Sequential(*layers)


def _fork(cin: int, stem: list[tuple], *ends: tuple) -> nn.Sequential:
    """A chain whose end splits into parallel convolutions (Inception-C)."""
    last = stem[-1][0] if stem else cin
    return nn.Sequential(*_chain(cin, *stem), Branches(*(_chain(last, end) for end in ends)))


def inception_v4(batch: int, size: int = 299, share: int = 1, repeats: tuple[int, int, int] = (4, 7, 3)) -> Made:
    """Szegedy et al. 2016, figures 3 to 9. `share` divides the channels, `repeats` counts the blocks of A, B and C."""

    def c(n: int) -> int:
        return n // share

    wide = (c(64), (1, 7)), (c(64), (7, 1))
    layers: list[nn.Module] = [
        _chain(3, (c(32), 3, 2, 0), (c(32), 3, 1, 0), (c(64), 3)),
        Branches(_chain(c(64), ("max",)), _chain(c(64), (c(96), 3, 2, 0))),
        Branches(_chain(c(160), (c(64), 1), (c(96), 3, 1, 0)), _chain(c(160), (c(64), 1), *wide, (c(96), 3, 1, 0))),
        Branches(_chain(c(192), (c(192), 3, 2, 0)), _chain(c(192), ("max",))),
    ]
    n = c(384)
    for _ in range(repeats[0]):
        layers.append(Branches(
            _chain(n, ("avg",), (c(96), 1)), _chain(n, (c(96), 1)), _chain(n, (c(64), 1), (c(96), 3)),
            _chain(n, (c(64), 1), (c(96), 3), (c(96), 3)),
        ))
    layers.append(Branches(
        _chain(n, ("max",)), _chain(n, (c(384), 3, 2, 0)), _chain(n, (c(192), 1), (c(224), 3), (c(256), 3, 2, 0))
    ))
    n = c(1024)
    for _ in range(repeats[1]):
        layers.append(Branches(
            _chain(n, ("avg",), (c(128), 1)), _chain(n, (c(384), 1)),
            _chain(n, (c(192), 1), (c(224), (1, 7)), (c(256), (7, 1))),
            _chain(n, (c(192), 1), (c(192), (1, 7)), (c(224), (7, 1)), (c(224), (1, 7)), (c(256), (7, 1))),
        ))
    layers.append(Branches(
        _chain(n, ("max",)), _chain(n, (c(192), 1), (c(192), 3, 2, 0)),
        _chain(n, (c(256), 1), (c(256), (1, 7)), (c(320), (7, 1)), (c(320), 3, 2, 0)),
    ))
    n = c(1536)
    for _ in range(repeats[2]):
        ends = (c(256), (1, 3)), (c(256), (3, 1))
        layers.append(Branches(
            _chain(n, ("avg",), (c(256), 1)), _chain(n, (c(256), 1)), _fork(n, [(c(384), 1)], *ends),
            _fork(n, [(c(384), 1), (c(448), (1, 3)), (c(512), (3, 1))], *ends),
        ))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(n, 1000)]
    return classified(nn.Sequential(*layers), batch, size, 1000)


def torchvision_model(name: str, batch: int, size: int = 224, classes: int = 1000, **options: object) -> Made:
    """A classifier of torchvision with random weights."""
    import torchvision

    model = getattr(torchvision.models, name)(num_classes=classes, **options)
    return classified(model, batch, size, classes)

"""LSTM written as cells, and a TreeLSTM over a complete binary tree."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[Tensor, ...]]


class LSTM(nn.Module):
    """One layer, unrolled: every step is its own products, sums and gates. A class per sequence from the last state."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.of_input, self.of_state = nn.Linear(features, 4 * hidden), nn.Linear(hidden, 4 * hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[1], self.hidden)
        for step in x.unbind(0):
            i, f, o, u = (self.of_input(step) + self.of_state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.cross_entropy(self.head(h), labels)


def lstm(batch: int, steps: int, features: int, hidden: int, classes: int = 10) -> Made:
    return LSTM(features, hidden, classes), (torch.randn(steps, batch, features), torch.randint(0, classes, (batch,)))


class TreeLSTM(nn.Module):
    """Tai et al. 2015, section 3.2, two children: a leaf reads a vector, a node its children; a class per tree from the root."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.leaf = nn.Linear(features, 3 * hidden)
        self.left, self.right = nn.Linear(hidden, 5 * hidden), nn.Linear(hidden, 5 * hidden, bias=False)
        self.head = nn.Linear(hidden, classes)

    def forward(self, leaves: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.state(leaves.unbind(0))[0]), labels)

    def state(self, leaves: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Depth first: the left subtree is done before the right one starts."""
        if len(leaves) == 1:
            i, o, u = self.leaf(leaves[0]).chunk(3, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u)
            return torch.sigmoid(o) * torch.tanh(c), c
        half = len(leaves) // 2
        (h_left, c_left), (h_right, c_right) = self.state(leaves[:half]), self.state(leaves[half:])
        i, f_left, f_right, o, u = (self.left(h_left) + self.right(h_right)).chunk(5, dim=1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * c_left + torch.sigmoid(f_right) * c_right
        return torch.sigmoid(o) * torch.tanh(c), c


def treelstm(batch: int, depth: int, features: int, hidden: int, classes: int = 5) -> Made:
    """`depth` levels of nodes above the 2^depth leaves."""
    return TreeLSTM(features, hidden, classes), (torch.randn(2**depth, batch, features), torch.randint(0, classes, (batch,)))

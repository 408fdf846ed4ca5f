"""make_model.py OUT.pt [SEED]: a scripted two-layer network with dropout that returns (loss, scores)."""

import sys

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 256)
        self.second = nn.Linear(256, 10)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.second(self.dropout(torch.tanh(self.first(x)).exp()).sigmoid())
        return nn.functional.cross_entropy(scores, labels), scores


torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
torch.jit.script(Model().train()).save(sys.argv[1])

"""A gated MLP whose parameters and inputs are bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(features, hidden, dtype=torch.bfloat16) * 0.1)
        self.up = nn.Parameter(torch.randn(features, hidden, dtype=torch.bfloat16) * 0.1)
        self.down = nn.Linear(hidden, features, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(x @ self.gate) * (x @ self.up))


def get_inputs():
    return [torch.randn(16, 64, dtype=torch.bfloat16)]


def get_init_inputs():
    return [64, 128]

import torch
import torch.nn as nn


class Model(nn.Module):
    """Matmul, cummax, median."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.matmul(x, x1)
        h2 = torch.cummax(h1, dim=-1).values
        return torch.median(h2, dim=-1).values


def get_inputs():
    return [
        torch.randn(4, 24, 20, 32),
        torch.randn(32, 128),
    ]


def get_init_inputs():
    return []

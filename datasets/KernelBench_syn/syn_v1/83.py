import torch
import torch.nn as nn


class Model(nn.Module):
    """Roll, neg, narrow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.roll(x, shifts=3, dims=-1)
        h2 = torch.neg(h1)
        return torch.narrow(h2, -1, 0, 256 // 2)


def get_inputs():
    return [
        torch.randn(512, 256),
    ]


def get_init_inputs():
    return []

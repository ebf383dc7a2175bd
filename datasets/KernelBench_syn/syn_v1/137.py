import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Silu, leaky relu, selu."""

    def __init__(self):
        super().__init__()
        self.selu_1 = nn.SELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = F.silu(x)
        h2 = F.leaky_relu(h1, negative_slope=0.2)
        return self.selu_1(h2)


def get_inputs():
    return [
        torch.randn(32, 32, 32),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """A per-channel scale and bias, then x * sigmoid(beta * x)."""

    def __init__(self, channels: int, beta: float):
        super().__init__()
        self.scale = nn.Parameter(1.0 + 0.1 * torch.randn(channels, 1, 1))
        self.bias = nn.Parameter(0.1 * torch.randn(channels, 1, 1))
        self.beta = beta

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale + self.bias
        return y * torch.sigmoid(self.beta * y)


def get_inputs():
    return [torch.randn(16, 32, 16, 16)]


def get_init_inputs():
    return [32, 1.5]

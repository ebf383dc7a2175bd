import torch
import torch.nn as nn


class Model(nn.Module):
    """The running sum of squares along a signal, compressed by a logarithm."""

    def __init__(self, floor: float):
        super().__init__()
        self.floor = floor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        energy = torch.cumsum(x * x, dim=-1)
        return torch.log(energy + self.floor)


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return [1e-3]

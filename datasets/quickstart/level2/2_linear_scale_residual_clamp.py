import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer, scaled, added to its input and clamped."""

    def __init__(self, features: int, scale: float, low: float, high: float):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.scale = scale
        self.low = low
        self.high = high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * self.scale
        y = y + x
        return torch.clamp(y, min=self.low, max=self.high)


batch, features = 48, 64


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features, 0.5, -1.0, 1.5]

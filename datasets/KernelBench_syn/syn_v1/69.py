import torch
import torch.nn as nn


class Model(nn.Module):
    """Angle, median, div, shift, atan2."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.angle(x)
        h2 = torch.median(h1, dim=-1).values
        h3 = h2 / x1
        h4 = h3 + -0.5
        return torch.atan2(h4, x1)


def get_inputs():
    return [
        torch.randn(512, 512),
        torch.rand(512) + 0.5,
    ]


def get_init_inputs():
    return []

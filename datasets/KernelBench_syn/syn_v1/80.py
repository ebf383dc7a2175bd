import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv2d, clamp max, silu."""

    def __init__(self):
        super().__init__()
        self.conv2d_1 = nn.Conv2d(32, 8, 3, stride=2, padding=1)
        self.silu_2 = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_1(x)
        h2 = torch.clamp_max(h1, 1.0)
        return self.silu_2(h2)


def get_inputs():
    return [
        torch.randn(16, 32, 14, 24),
    ]


def get_init_inputs():
    return []

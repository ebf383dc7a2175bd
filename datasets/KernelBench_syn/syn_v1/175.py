import torch
import torch.nn as nn


class Model(nn.Module):
    """Heaviside, conv2d dilated, mish, add, narrow."""

    def __init__(self):
        super().__init__()
        self.conv2d_dilated_1 = nn.Conv2d(16, 8, 3, padding=2, dilation=2)
        self.mish_2 = nn.Mish()
        self.weight_3 = nn.Parameter(torch.randn(8, 8, 8, 64))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.heaviside(x, x1)
        h2 = self.conv2d_dilated_1(h1)
        h3 = self.mish_2(h2)
        h4 = h3 + self.weight_3
        return torch.narrow(h4, -1, 0, 64 // 2)


def get_inputs():
    return [
        torch.randn(8, 16, 8, 64),
        torch.randn(8, 16, 8, 64),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Neg, conv2d, add, amin, celu, cat."""

    def __init__(self):
        super().__init__()
        self.conv2d_1 = nn.Conv2d(4, 32, 3, stride=1, padding=1)
        self.celu_2 = nn.CELU(alpha=0.5)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.neg(x)
        h2 = self.conv2d_1(h1)
        h3 = h2 + x1
        h4 = torch.amin(h3, dim=-1, keepdim=True)
        h5 = self.celu_2(h4)
        return torch.cat([h5, h4], dim=-1)


def get_inputs():
    return [
        torch.randn(64, 4, 14, 32),
        torch.randn(64, 32, 14, 32),
    ]


def get_init_inputs():
    return []

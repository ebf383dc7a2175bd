import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A convolution, group normalisation and mish."""

    def __init__(self, channels: int, width: int, groups: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, padding=1)
        self.norm = nn.GroupNorm(groups, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.mish(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(8, 16, 32, 32)]


def get_init_inputs():
    return [16, 32, 4]

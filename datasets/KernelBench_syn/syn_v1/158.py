import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv2d pointwise, group norm, hardswish."""

    def __init__(self):
        super().__init__()
        self.conv2d_pointwise_1 = nn.Conv2d(48, 32, 1)
        self.group_norm_2 = nn.GroupNorm(8, 32)
        self.hardswish_3 = nn.Hardswish()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_pointwise_1(x)
        h2 = self.group_norm_2(h1)
        return self.hardswish_3(h2)


def get_inputs():
    return [
        torch.randn(4, 48, 28, 12),
    ]


def get_init_inputs():
    return []

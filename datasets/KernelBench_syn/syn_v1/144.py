import torch
import torch.nn as nn


class Model(nn.Module):
    """Instance norm, flip, cummax, group norm, conv2d dilated."""

    def __init__(self):
        super().__init__()
        self.instance_norm_1 = nn.InstanceNorm2d(16)
        self.group_norm_2 = nn.GroupNorm(8, 16)
        self.conv2d_dilated_3 = nn.Conv2d(16, 16, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.instance_norm_1(x)
        h2 = torch.flip(h1, dims=(-1,))
        h3 = torch.cummax(h2, dim=-1).values
        h4 = self.group_norm_2(h3)
        return self.conv2d_dilated_3(h4)


def get_inputs():
    return [
        torch.randn(64, 16, 8, 14),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softmin, conv2d dilated, atan2, silu, nanmean."""

    def __init__(self):
        super().__init__()
        self.conv2d_dilated_1 = nn.Conv2d(16, 8, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.softmin(x, dim=-1)
        h2 = self.conv2d_dilated_1(h1)
        h3 = torch.atan2(h2, x1)
        h4 = F.silu(h3)
        return torch.nanmean(h4, dim=-1)


def get_inputs():
    return [
        torch.randn(8, 16, 24, 32),
        torch.randn(8, 8, 24, 32),
    ]


def get_init_inputs():
    return []

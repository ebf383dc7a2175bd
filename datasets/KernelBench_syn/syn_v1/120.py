import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv2d, scaled dot product attention, nansum, nanmean."""

    def __init__(self):
        super().__init__()
        self.conv2d_1 = nn.Conv2d(32, 32, 3, stride=1, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_1(x)
        h2 = F.scaled_dot_product_attention(h1, x, x)
        h3 = torch.nansum(h2, dim=-1)
        return torch.nanmean(h3, dim=-1)


def get_inputs():
    return [
        torch.randn(16, 32, 24, 12),
    ]


def get_init_inputs():
    return []

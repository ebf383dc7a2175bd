import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv2d dilated, softplus, add, reciprocal, sigmoid, acos."""

    def __init__(self):
        super().__init__()
        self.conv2d_dilated_1 = nn.Conv2d(64, 8, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_dilated_1(x)
        h2 = F.softplus(h1) + 0.1
        h3 = torch.reciprocal(h2)
        h4 = torch.sigmoid(h3)
        return torch.acos(h4)


def get_inputs():
    return [
        torch.randn(4, 64, 20, 16),
    ]


def get_init_inputs():
    return []

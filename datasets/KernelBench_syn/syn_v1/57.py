import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Group norm, softshrink, local response norm, cos, conv2d dilated."""

    def __init__(self):
        super().__init__()
        self.group_norm_1 = nn.GroupNorm(2, 4)
        self.local_response_norm_2 = nn.LocalResponseNorm(3)
        self.conv2d_dilated_3 = nn.Conv2d(4, 8, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.group_norm_1(x)
        h2 = F.softshrink(h1, lambd=0.1)
        h3 = self.local_response_norm_2(h2)
        h4 = torch.cos(h3)
        return self.conv2d_dilated_3(h4)


def get_inputs():
    return [
        torch.randn(128, 4, 8, 28),
    ]


def get_init_inputs():
    return []

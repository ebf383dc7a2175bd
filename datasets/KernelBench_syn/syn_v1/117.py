import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv2d dilated, binary cross entropy with logits, leaky relu, addcdiv, add channel bias."""

    def __init__(self):
        super().__init__()
        self.conv2d_dilated_1 = nn.Conv2d(8, 16, 3, padding=2, dilation=2)
        self.leaky_relu_2 = nn.LeakyReLU(0.01)
        self.weight_3 = nn.Parameter(torch.randn(16, 1, 1))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_dilated_1(x)
        h2 = F.binary_cross_entropy_with_logits(h1, x1, reduction="none")
        h3 = self.leaky_relu_2(h2)
        h4 = torch.addcdiv(h3, x1, x2, value=0.5)
        return h4 + self.weight_3


def get_inputs():
    return [
        torch.randn(128, 8, 14, 12),
        0.98 * torch.rand(128, 16, 14, 12) + 0.01,
        torch.rand(128, 16, 14, 12) + 0.5,
    ]


def get_init_inputs():
    return []

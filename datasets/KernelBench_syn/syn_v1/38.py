import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv2d dilated, tanh, relu, logsigmoid."""

    def __init__(self):
        super().__init__()
        self.conv2d_dilated_1 = nn.Conv2d(8, 16, 3, padding=2, dilation=2)
        self.tanh_2 = nn.Tanh()
        self.relu_3 = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_dilated_1(x)
        h2 = self.tanh_2(h1)
        h3 = self.relu_3(h2)
        return F.logsigmoid(h3)


def get_inputs():
    return [
        torch.randn(16, 8, 48, 14),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Batch norm2d, nan to num, relu6, sigmoid, acos."""

    def __init__(self):
        super().__init__()
        self.batch_norm2d_1 = nn.BatchNorm2d(48)
        self.relu6_2 = nn.ReLU6()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.batch_norm2d_1(x)
        h2 = torch.nan_to_num(h1, nan=0.0)
        h3 = self.relu6_2(h2)
        h4 = torch.sigmoid(h3)
        return torch.acos(h4)


def get_inputs():
    return [
        torch.randn(8, 48, 24, 12),
    ]


def get_init_inputs():
    return []

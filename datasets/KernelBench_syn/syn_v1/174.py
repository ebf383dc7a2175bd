import torch
import torch.nn as nn


class Model(nn.Module):
    """Batch norm2d, atan2, conv2d depthwise, group norm."""

    def __init__(self):
        super().__init__()
        self.batch_norm2d_1 = nn.BatchNorm2d(32)
        self.conv2d_depthwise_2 = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.group_norm_3 = nn.GroupNorm(8, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.batch_norm2d_1(x)
        h2 = torch.atan2(h1, x)
        h3 = self.conv2d_depthwise_2(h2)
        return self.group_norm_3(h3)


def get_inputs():
    return [
        torch.randn(64, 32, 8, 16),
    ]


def get_init_inputs():
    return []

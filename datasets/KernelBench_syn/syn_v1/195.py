import torch
import torch.nn as nn


class Model(nn.Module):
    """Batch norm2d, max pool2d, meshgrid add, zero pad2d."""

    def __init__(self):
        super().__init__()
        self.batch_norm2d_1 = nn.BatchNorm2d(32)
        self.max_pool2d_2 = nn.MaxPool2d(3, stride=1)
        self.weight_3 = nn.Parameter(torch.randn(10))
        self.zero_pad2d_4 = nn.ZeroPad2d(2)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.batch_norm2d_1(x)
        h2 = self.max_pool2d_2(h1)
        h3 = h2 + torch.meshgrid(self.weight_3, x1, indexing="ij")[0]
        return self.zero_pad2d_4(h3)


def get_inputs():
    return [
        torch.randn(16, 32, 12, 24),
        torch.randn(22),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Logaddexp2, max pool2d, batch norm2d."""

    def __init__(self):
        super().__init__()
        self.max_pool2d_1 = nn.MaxPool2d(2, stride=1)
        self.batch_norm2d_2 = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.logaddexp2(x, x1)
        h2 = self.max_pool2d_1(h1)
        return self.batch_norm2d_2(h2)


def get_inputs():
    return [
        torch.randn(64, 4, 8, 128),
        torch.randn(64, 4, 8, 128),
    ]


def get_init_inputs():
    return []

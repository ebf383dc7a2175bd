import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Tril, pixel shuffle, matmul, tanhshrink."""

    def __init__(self):
        super().__init__()
        self.pixel_shuffle_1 = nn.PixelShuffle(2)
        self.weight_2 = nn.Parameter(0.2041 * torch.randn(24, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.tril(x)
        h2 = self.pixel_shuffle_1(h1)
        h3 = torch.matmul(h2, self.weight_2)
        return F.tanhshrink(h3)


def get_inputs():
    return [
        torch.randn(8, 64, 24, 12),
    ]


def get_init_inputs():
    return []

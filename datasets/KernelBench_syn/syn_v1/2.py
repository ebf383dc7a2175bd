import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv transpose2d, silu, log softmax, cumprod."""

    def __init__(self):
        super().__init__()
        self.conv_transpose2d_1 = nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1)
        self.log_softmax_2 = nn.LogSoftmax(dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv_transpose2d_1(x)
        h2 = F.silu(h1)
        h3 = self.log_softmax_2(h2)
        return torch.cumprod(h3, dim=-1)


def get_inputs():
    return [
        torch.randn(128, 4, 8, 24),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Einsum channels, addcdiv, add channel bias."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.125 * torch.randn(64, 32))
        self.weight_2 = nn.Parameter(torch.randn(32, 1, 1))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nchw,co->nohw", x, self.weight_1)
        h2 = torch.addcdiv(h1, x1, x2, value=0.5)
        return h2 + self.weight_2


def get_inputs():
    return [
        torch.randn(16, 64, 8, 20),
        torch.randn(16, 32, 8, 20),
        torch.rand(16, 32, 8, 20) + 0.5,
    ]


def get_init_inputs():
    return []

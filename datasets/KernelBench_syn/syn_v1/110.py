import torch
import torch.nn as nn


class Model(nn.Module):
    """Tanh, sigmoid, asin, flip, triu."""

    def __init__(self):
        super().__init__()
        self.tanh_1 = nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.tanh_1(x)
        h2 = torch.sigmoid(h1)
        h3 = torch.asin(h2)
        h4 = torch.flip(h3, dims=(-1,))
        return torch.triu(h4, diagonal=1)


def get_inputs():
    return [
        torch.randn(256, 192),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Take along dim, i1, max pool1d, add bias, triu."""

    def __init__(self):
        super().__init__()
        self.max_pool1d_1 = nn.MaxPool1d(3, stride=2)
        self.weight_2 = nn.Parameter(torch.randn(255))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.take_along_dim(x, x1, dim=1)
        h2 = torch.special.i1(h1)
        h3 = self.max_pool1d_1(h2)
        h4 = h3 + self.weight_2
        return torch.triu(h4, diagonal=1)


def get_inputs():
    return [
        torch.randn(8, 32, 512),
        torch.randint(0, 32, (8, 32, 512)),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Kthvalue, diff, triu."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.kthvalue(x, 5, dim=-1).values
        h2 = torch.diff(h1, dim=-1)
        return torch.triu(h2, diagonal=1)


def get_inputs():
    return [
        torch.randn(4, 8, 24, 128),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Aminmax, select, outer product."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.25 * torch.randn(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.aminmax(x, dim=-1).max
        h2 = torch.select(h1, 1, 0)
        return torch.einsum("nd,np->ndp", h2, self.weight_1)


def get_inputs():
    return [
        torch.randn(16, 4, 32, 128),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Diff, cumsum, softplus."""

    def __init__(self):
        super().__init__()
        self.softplus_1 = nn.Softplus(beta=2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.diff(x, dim=-1)
        h2 = torch.cumsum(h1, dim=-1)
        return self.softplus_1(h2)


def get_inputs():
    return [
        torch.randn(128, 24, 48),
    ]


def get_init_inputs():
    return []

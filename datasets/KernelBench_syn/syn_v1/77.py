import torch
import torch.nn as nn


class Model(nn.Module):
    """Select, logaddexp2, flip, renorm, fmin, sum."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.select(x, 1, 0)
        h2 = torch.logaddexp2(h1, x1)
        h3 = torch.flip(h2, dims=(-1,))
        h4 = torch.renorm(h3, p=2, dim=0, maxnorm=5.0)
        h5 = torch.fmin(h4, h1)
        return torch.sum(h5, dim=-1)


def get_inputs():
    return [
        torch.randn(8, 64, 96),
        torch.randn(8, 96),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Logsumexp, diff, mish."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.logsumexp(x, dim=-1)
        h2 = torch.diff(h1, dim=-1)
        return F.mish(h2)


def get_inputs():
    return [
        torch.randn(32, 16, 64),
    ]


def get_init_inputs():
    return []

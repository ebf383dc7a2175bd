import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Triu, gelu, relu6, softshrink."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.triu(x, diagonal=1)
        h2 = F.gelu(h1, approximate="none")
        h3 = F.relu6(h2)
        return F.softshrink(h3, lambd=0.25)


def get_inputs():
    return [
        torch.randn(8, 32, 12, 48),
    ]


def get_init_inputs():
    return []

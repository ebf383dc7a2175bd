import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Bmm, causal attention, sigmoid, atanh, max, gelu."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.bmm(x, x1)
        h2 = F.scaled_dot_product_attention(h1, x1, x1, is_causal=True)
        h3 = torch.sigmoid(h2)
        h4 = torch.atanh(h3)
        h5 = torch.max(h4, dim=1).values
        return F.gelu(h5, approximate="tanh")


def get_inputs():
    return [
        torch.randn(4, 256, 256),
        torch.randn(4, 256, 64),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One head of causal attention, its output through a linear layer."""

    def __init__(self, features: int):
        super().__init__()
        self.qkv = nn.Linear(features, 3 * features, bias=False)
        self.out = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


def get_inputs():
    return [torch.randn(8, 96, 64)]


def get_init_inputs():
    return [64]

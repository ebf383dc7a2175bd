import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Tile, causal attention, embedding lookup, repeat interleave."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(128, 64))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, x3: torch.Tensor) -> torch.Tensor:
        h1 = torch.tile(x, (1, 1, 2))
        h2 = F.scaled_dot_product_attention(h1, x1, x2, is_causal=True)
        h3 = h2 * F.embedding(x3, self.weight_1)
        return torch.repeat_interleave(h3, 2, dim=-1)


def get_inputs():
    return [
        torch.randn(128, 48, 32),
        torch.randn(128, 48, 64),
        torch.randn(128, 48, 64),
        torch.randint(0, 128, (48,)),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multihead attention, bmm, causal attention, erfc, einsum bij, roll."""

    def __init__(self):
        super().__init__()
        self.multihead_attention_1 = nn.MultiheadAttention(80, 2, batch_first=True)
        self.weight_2 = nn.Parameter(0.1768 * torch.randn(32, 32))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.multihead_attention_1(x, x, x, need_weights=False)[0]
        h2 = torch.bmm(h1, x1)
        h3 = F.scaled_dot_product_attention(h2, x2, x2, is_causal=True)
        h4 = torch.erfc(h3)
        h5 = torch.einsum("nld,dp->nlp", h4, self.weight_2)
        return torch.roll(h5, shifts=3, dims=-1)


def get_inputs():
    return [
        torch.randn(32, 16, 80),
        torch.randn(32, 80, 32),
        torch.randn(32, 16, 32),
    ]


def get_init_inputs():
    return []

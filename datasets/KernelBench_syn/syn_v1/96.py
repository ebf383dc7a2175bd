import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Causal attention, hardswish, multihead attention, baddbmm."""

    def __init__(self):
        super().__init__()
        self.hardswish_1 = nn.Hardswish()
        self.multihead_attention_2 = nn.MultiheadAttention(64, 2, batch_first=True)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = F.scaled_dot_product_attention(x, x1, x1, is_causal=True)
        h2 = self.hardswish_1(h1)
        h3 = self.multihead_attention_2(h2, h2, h2, need_weights=False)[0]
        return torch.baddbmm(h1, h3, x2)


def get_inputs():
    return [
        torch.randn(64, 16, 64),
        torch.randn(64, 16, 64),
        torch.randn(64, 64, 64),
    ]


def get_init_inputs():
    return []

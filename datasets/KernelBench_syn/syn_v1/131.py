import torch
import torch.nn as nn


class Model(nn.Module):
    """Multihead attention, cat, sigmoid."""

    def __init__(self):
        super().__init__()
        self.multihead_attention_1 = nn.MultiheadAttention(48, 4, batch_first=True)
        self.sigmoid_2 = nn.Sigmoid()

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.multihead_attention_1(x, x, x, need_weights=False)[0]
        h2 = torch.cat([h1, x1], dim=-1)
        return self.sigmoid_2(h2)


def get_inputs():
    return [
        torch.randn(256, 16, 48),
        torch.randn(256, 16, 48),
    ]


def get_init_inputs():
    return []

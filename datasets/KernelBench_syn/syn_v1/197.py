import torch
import torch.nn as nn


class Model(nn.Module):
    """Multihead attention, relu6, layer norm."""

    def __init__(self):
        super().__init__()
        self.multihead_attention_1 = nn.MultiheadAttention(48, 4, batch_first=True)
        self.relu6_2 = nn.ReLU6()
        self.layer_norm_3 = nn.LayerNorm(48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.multihead_attention_1(x, x, x, need_weights=False)[0]
        h2 = self.relu6_2(h1)
        return self.layer_norm_3(h2)


def get_inputs():
    return [
        torch.randn(32, 24, 48),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multihead attention, hardtanh, max pool1d, normalize, flip."""

    def __init__(self):
        super().__init__()
        self.multihead_attention_1 = nn.MultiheadAttention(64, 2, batch_first=True)
        self.max_pool1d_2 = nn.MaxPool1d(2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.multihead_attention_1(x, x, x, need_weights=False)[0]
        h2 = F.hardtanh(h1, min_val=-1.0, max_val=2.0)
        h3 = self.max_pool1d_2(h2)
        h4 = F.normalize(h3, p=2, dim=-1)
        return torch.flip(h4, dims=(-1,))


def get_inputs():
    return [
        torch.randn(32, 48, 64),
    ]


def get_init_inputs():
    return []

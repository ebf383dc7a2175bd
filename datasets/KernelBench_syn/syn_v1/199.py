import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multihead attention, relu, cummin, nansum, batch norm1d, cosine similarity."""

    def __init__(self):
        super().__init__()
        self.multihead_attention_1 = nn.MultiheadAttention(64, 2, batch_first=True)
        self.relu_2 = nn.ReLU()
        self.batch_norm1d_3 = nn.BatchNorm1d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.multihead_attention_1(x, x, x, need_weights=False)[0]
        h2 = self.relu_2(h1)
        h3 = torch.cummin(h2, dim=-1).values
        h4 = torch.nansum(h3, dim=-1)
        h5 = self.batch_norm1d_3(h4)
        return F.cosine_similarity(h5, h4, dim=-1)


def get_inputs():
    return [
        torch.randn(64, 16, 64),
    ]


def get_init_inputs():
    return []

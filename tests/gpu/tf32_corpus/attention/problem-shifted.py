# mypy: ignore-errors
"""Multi-head attention with projections, four products in a chain. Inputs with mean 1.5."""

import torch
import torch.nn as nn

BATCH = 8
LENGTH = 256
DIM = 256
HEADS = 4


class Model(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        nn.init.normal_(self.qkv.weight, std=(2 / dim) ** 0.5)
        nn.init.normal_(self.out.weight, std=(2 / dim) ** 0.5)

    def forward(self, x):
        batch, length, dim = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (dim // self.heads) ** -0.5
        heads = torch.softmax(scores, dim=-1) @ v
        return self.out(heads.transpose(1, 2).reshape(batch, length, dim))


def get_inputs():
    return [torch.rand(BATCH, LENGTH, DIM) * 2 + 0.5]


def get_init_inputs():
    return [DIM, HEADS]

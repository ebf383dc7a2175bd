"""Attention with a boolean mask; heads are made by a generator expression."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)

    def forward(self, x, mask):
        b, n, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=-1)
        q, k, v = (z.view(b, n, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, c))


def get_inputs():
    n = 16
    return [torch.randn(2, n, 32), torch.ones(n, n, dtype=torch.bool).tril()]


def get_init_inputs():
    return [32, 4]

import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal self-attention with normalisation in front and a residual connection."""

    def __init__(self, features: int, heads: int, longest: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.mix = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.register_buffer("later", torch.ones(longest, longest).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, features = x.shape
        width = features // self.heads
        query, key, value = self.mix(self.norm(x)).split(features, dim=-1)
        query = query.view(batch, tokens, self.heads, width).transpose(1, 2)
        key = key.view(batch, tokens, self.heads, width).transpose(1, 2)
        value = value.view(batch, tokens, self.heads, width).transpose(1, 2)
        scores = query @ key.transpose(-2, -1) * width**-0.5
        scores = scores.masked_fill(self.later[:tokens, :tokens], float("-inf"))
        y = torch.softmax(scores, dim=-1) @ value
        y = y.transpose(1, 2).reshape(batch, tokens, features)
        return x + self.out(y)


batch, tokens, features, heads = 2, 32, 32, 4


def get_inputs():
    return [torch.randn(batch, tokens, features)]


def get_init_inputs():
    return [features, heads, 48]

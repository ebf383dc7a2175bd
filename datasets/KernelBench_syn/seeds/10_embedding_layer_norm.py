import torch
import torch.nn as nn


class Model(nn.Module):
    """Token and position embeddings, added and normalised."""

    def __init__(self, tokens: int, length: int, features: int):
        super().__init__()
        self.token = nn.Embedding(tokens, features)
        self.position = nn.Parameter(0.02 * torch.randn(length, features))
        self.norm = nn.LayerNorm(features)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.norm(self.token(ids) + self.position)


def get_inputs():
    return [torch.randint(0, 500, (16, 64))]


def get_init_inputs():
    return [500, 64, 128]

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cosine similarity, layer norm, embedding bag, aminmax."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(16)
        self.embedding_bag_2 = nn.EmbeddingBag(64, 16, mode="mean")

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = F.cosine_similarity(x, x1, dim=-1)
        h2 = self.layer_norm_1(h1)
        h3 = h2 + self.embedding_bag_2(x2)
        return torch.aminmax(h3, dim=-1).max


def get_inputs():
    return [
        torch.randn(64, 16, 48),
        torch.randn(64, 16, 48),
        torch.randint(0, 64, (64, 8)),
    ]


def get_init_inputs():
    return []

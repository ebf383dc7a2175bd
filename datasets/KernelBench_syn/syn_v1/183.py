import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Embedding, circular pad1d, shift."""

    def __init__(self):
        super().__init__()
        self.embedding_1 = nn.Embedding(256, 512)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = x + self.embedding_1(x1)
        h2 = F.pad(h1, (2, 2), mode="circular")
        return h2 + -0.5


def get_inputs():
    return [
        torch.randn(4, 16, 512),
        torch.randint(0, 256, (4, 16)),
    ]


def get_init_inputs():
    return []

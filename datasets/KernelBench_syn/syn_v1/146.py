import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmin, cosh, mish, embedding."""

    def __init__(self):
        super().__init__()
        self.softmin_1 = nn.Softmin(dim=-1)
        self.mish_2 = nn.Mish()
        self.embedding_3 = nn.Embedding(64, 32)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.softmin_1(x)
        h2 = torch.cosh(h1)
        h3 = self.mish_2(h2)
        return h3 + self.embedding_3(x1)


def get_inputs():
    return [
        torch.randn(256, 24, 32),
        torch.randint(0, 64, (256, 24)),
    ]


def get_init_inputs():
    return []

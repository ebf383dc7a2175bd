import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softmin, prelu, div, cosine similarity, clamp, cummax."""

    def __init__(self):
        super().__init__()
        self.prelu_1 = nn.PReLU(16)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = F.softmin(x, dim=-1)
        h2 = self.prelu_1(h1)
        h3 = h2 / x1
        h4 = F.cosine_similarity(h3, x2, dim=-1)
        h5 = torch.clamp(h4, min=-0.5, max=0.5)
        return torch.cummax(h5, dim=-1).values


def get_inputs():
    return [
        torch.randn(8, 16, 16, 32),
        torch.rand(8, 16, 16, 32) + 0.5,
        torch.randn(8, 16, 16, 32),
    ]


def get_init_inputs():
    return []

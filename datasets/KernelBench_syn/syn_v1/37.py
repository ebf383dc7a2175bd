import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv transpose2d, softplus, add, log1p, igamma, cosine similarity."""

    def __init__(self):
        super().__init__()
        self.conv_transpose2d_1 = nn.ConvTranspose2d(24, 8, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.conv_transpose2d_1(x)
        h2 = F.softplus(h1) + 0.1
        h3 = torch.log1p(h2)
        h4 = torch.igamma(h3, x1)
        return F.cosine_similarity(h4, x2, dim=-1)


def get_inputs():
    return [
        torch.randn(4, 24, 28, 16),
        torch.rand(4, 8, 56, 32) + 0.5,
        torch.randn(4, 8, 56, 32),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Conv2d, linear, cosine similarity, poisson nll loss, margin ranking loss."""

    def __init__(self):
        super().__init__()
        self.conv2d_1 = nn.Conv2d(32, 8, 3, stride=2, padding=1)
        self.linear_2 = nn.Linear(16, 64, bias=True)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, x3: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_1(x)
        h2 = self.linear_2(h1)
        h3 = F.cosine_similarity(h2, x1, dim=-1)
        h4 = F.poisson_nll_loss(h3, x2, reduction="none")
        return F.margin_ranking_loss(h4, h3, x3, margin=0.5, reduction="none")


def get_inputs():
    return [
        torch.randn(4, 32, 24, 32),
        torch.randn(4, 8, 12, 64),
        torch.rand(4, 8, 12) + 0.5,
        2.0 * torch.randint(0, 2, (4, 8, 12)) - 1.0,
    ]


def get_init_inputs():
    return []

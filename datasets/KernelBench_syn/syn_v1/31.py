import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cross entropy, margin ranking loss, softplus, add, reciprocal."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(512))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = F.cross_entropy(x, x1, reduction="none")
        h2 = F.margin_ranking_loss(h1, self.weight_1, x2, margin=0.5, reduction="none")
        h3 = F.softplus(h2) + 0.1
        return torch.reciprocal(h3)


def get_inputs():
    return [
        torch.randn(512, 256),
        torch.randint(0, 256, (512,)),
        2.0 * torch.randint(0, 2, (512,)) - 1.0,
    ]


def get_init_inputs():
    return []

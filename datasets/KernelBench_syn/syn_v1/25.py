import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Var, margin ranking loss, clamp max."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(4, 16, 20, 1))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.var(x, dim=-1, keepdim=True, unbiased=False)
        h2 = F.margin_ranking_loss(h1, self.weight_1, x1, margin=0.5, reduction="none")
        return torch.clamp_max(h2, 1.0)


def get_inputs():
    return [
        torch.randn(4, 16, 20, 192),
        2.0 * torch.randint(0, 2, (4, 16, 20, 1)) - 1.0,
    ]


def get_init_inputs():
    return []

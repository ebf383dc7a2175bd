import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Log softmax, nansum, margin ranking loss."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(512))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.log_softmax(x, dim=-1)
        h2 = torch.nansum(h1, dim=-1)
        return F.margin_ranking_loss(h2, self.weight_1, x1, margin=0.5, reduction="none")


def get_inputs():
    return [
        torch.randn(512, 96),
        2.0 * torch.randint(0, 2, (512,)) - 1.0,
    ]


def get_init_inputs():
    return []

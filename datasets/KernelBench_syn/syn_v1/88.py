import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Log softmax, circular pad1d, mish, margin ranking loss, hardsigmoid."""

    def __init__(self):
        super().__init__()
        self.log_softmax_1 = nn.LogSoftmax(dim=-1)
        self.mish_2 = nn.Mish()

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.log_softmax_1(x)
        h2 = F.pad(h1, (1, 1), mode="circular")
        h3 = self.mish_2(h2)
        h4 = F.margin_ranking_loss(h3, h2, x1, margin=0.5, reduction="none")
        return F.hardsigmoid(h4)


def get_inputs():
    return [
        torch.randn(16, 16, 512),
        2.0 * torch.randint(0, 2, (16, 16, 514)) - 1.0,
    ]


def get_init_inputs():
    return []

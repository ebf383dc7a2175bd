import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Sigmoid, tan, neg, hinge embedding loss."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.sigmoid(x)
        h2 = torch.tan(h1)
        h3 = torch.neg(h2)
        return F.hinge_embedding_loss(h3, x1, reduction="none")


def get_inputs():
    return [
        torch.randn(256, 192),
        2.0 * torch.randint(0, 2, (256, 192)) - 1.0,
    ]


def get_init_inputs():
    return []

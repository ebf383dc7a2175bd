import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Outer product, huber loss, softplus, add, modified bessel k1."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.0442 * torch.randn(512, 16))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nd,np->ndp", x, self.weight_1)
        h2 = F.huber_loss(h1, x1, delta=1.0, reduction="none")
        h3 = F.softplus(h2) + 0.1
        return torch.special.modified_bessel_k1(h3)


def get_inputs():
    return [
        torch.randn(512, 96),
        torch.randn(512, 96, 16),
    ]


def get_init_inputs():
    return []

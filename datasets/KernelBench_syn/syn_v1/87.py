import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Glu, poisson nll loss, selu, causal attention."""

    def __init__(self):
        super().__init__()
        self.glu_1 = nn.GLU(dim=-1)
        self.selu_2 = nn.SELU()
        self.weight_3 = nn.Parameter(torch.randn(16, 24, 64))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.glu_1(x)
        h2 = F.poisson_nll_loss(h1, x1, reduction="none")
        h3 = self.selu_2(h2)
        return F.scaled_dot_product_attention(h3, h2, self.weight_3, is_causal=True)


def get_inputs():
    return [
        torch.randn(16, 24, 128),
        torch.rand(16, 24, 64) + 0.5,
    ]


def get_init_inputs():
    return []

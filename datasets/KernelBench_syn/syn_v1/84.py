import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Causal attention, rms norm, log softmax, gaussian nll loss."""

    def __init__(self):
        super().__init__()
        self.rms_norm_1 = nn.RMSNorm(32, eps=1e-06)
        self.log_softmax_2 = nn.LogSoftmax(dim=-1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = F.scaled_dot_product_attention(x, x1, x1, is_causal=True)
        h2 = self.rms_norm_1(h1)
        h3 = self.log_softmax_2(h2)
        return F.gaussian_nll_loss(h3, x, x2, reduction="none")


def get_inputs():
    return [
        torch.randn(32, 100, 32),
        torch.randn(32, 100, 32),
        torch.rand(32, 100, 32) + 0.5,
    ]


def get_init_inputs():
    return []

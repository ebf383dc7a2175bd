import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Nan to num, rms norm, causal attention."""

    def __init__(self):
        super().__init__()
        self.rms_norm_1 = nn.RMSNorm(64, eps=1e-06)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.nan_to_num(x, nan=0.0)
        h2 = self.rms_norm_1(h1)
        return F.scaled_dot_product_attention(h2, x1, x, is_causal=True)


def get_inputs():
    return [
        torch.randn(256, 16, 64),
        torch.randn(256, 16, 64),
    ]


def get_init_inputs():
    return []

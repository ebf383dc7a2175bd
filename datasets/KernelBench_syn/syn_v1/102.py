import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softmax, gram, causal attention."""

    def __init__(self):
        super().__init__()
        self.softmax_1 = nn.Softmax(dim=-1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.softmax_1(x)
        h2 = torch.matmul(h1, h1.transpose(-2, -1)) * (1.0 / 64)
        return F.scaled_dot_product_attention(h2, x1, x2, is_causal=True)


def get_inputs():
    return [
        torch.randn(256, 16, 64),
        torch.randn(256, 16, 16),
        torch.randn(256, 16, 16),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Causal attention, erf, conv1d, logsigmoid, selu."""

    def __init__(self):
        super().__init__()
        self.conv1d_1 = nn.Conv1d(16, 16, 3, padding=3 // 2)
        self.selu_2 = nn.SELU()

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.scaled_dot_product_attention(x, x1, x1, is_causal=True)
        h2 = torch.erf(h1)
        h3 = self.conv1d_1(h2)
        h4 = F.logsigmoid(h3)
        return self.selu_2(h4)


def get_inputs():
    return [
        torch.randn(32, 16, 96),
        torch.randn(32, 16, 96),
    ]


def get_init_inputs():
    return []

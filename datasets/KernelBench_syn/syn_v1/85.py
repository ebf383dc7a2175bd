import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mish, transpose, aminmax, margin ranking loss, rms norm."""

    def __init__(self):
        super().__init__()
        self.mish_1 = nn.Mish()
        self.rms_norm_2 = nn.RMSNorm(512, eps=1e-06)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.mish_1(x)
        h2 = h1.transpose(-2, -1).contiguous()
        h3 = torch.aminmax(h2, dim=-1).max
        h4 = F.margin_ranking_loss(h3, x1, x2, margin=0.5, reduction="none")
        return self.rms_norm_2(h4)


def get_inputs():
    return [
        torch.randn(4, 32, 512),
        torch.randn(4, 512),
        2.0 * torch.randint(0, 2, (4, 512)) - 1.0,
    ]


def get_init_inputs():
    return []

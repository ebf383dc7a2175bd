import torch
import torch.nn as nn


class Model(nn.Module):
    """Scale, vector norm, rms norm, softsign, layer norm."""

    def __init__(self):
        super().__init__()
        self.rms_norm_1 = nn.RMSNorm(256, eps=1e-06)
        self.softsign_2 = nn.Softsign()
        self.layer_norm_3 = nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = x * 0.25
        h2 = torch.linalg.vector_norm(h1, ord=2, dim=-1)
        h3 = self.rms_norm_1(h2)
        h4 = self.softsign_2(h3)
        return self.layer_norm_3(h4)


def get_inputs():
    return [
        torch.randn(256, 256),
    ]


def get_init_inputs():
    return []

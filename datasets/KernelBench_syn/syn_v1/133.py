import torch
import torch.nn as nn


class Model(nn.Module):
    """Adaptive avg pool2d, repeat interleave, local response norm, movedim."""

    def __init__(self):
        super().__init__()
        self.adaptive_avg_pool2d_1 = nn.AdaptiveAvgPool2d(7)
        self.local_response_norm_2 = nn.LocalResponseNorm(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.adaptive_avg_pool2d_1(x)
        h2 = torch.repeat_interleave(h1, 2, dim=-1)
        h3 = self.local_response_norm_2(h2)
        return torch.movedim(h3, 1, -1).contiguous()


def get_inputs():
    return [
        torch.randn(16, 8, 16, 32),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Root-mean-square normalisation, written out, with a learned scale."""

    def __init__(self, features: int, epsilon: float):
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.epsilon) * self.weight


batch, tokens, features = 4, 24, 160


def get_inputs():
    return [torch.randn(batch, tokens, features)]


def get_init_inputs():
    return [features, 1e-5]

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One half of the features gates the other: silu(gate + bias) * value, and how open the gates are."""

    def __init__(self, features: int):
        super().__init__()
        self.bias = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gate, value = x.chunk(2, dim=-1)
        gate = gate + self.bias
        return F.silu(gate) * value, torch.sigmoid(gate).mean(dim=-1)


batch, tokens, features = 4, 24, 128


def get_inputs():
    return [torch.randn(batch, tokens, 2 * features)]


def get_init_inputs():
    return [features]

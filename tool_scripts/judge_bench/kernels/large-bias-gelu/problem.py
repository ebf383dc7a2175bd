# mypy: ignore-errors
"""Bias and exact GELU of 8192 x 8192 numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """The reference."""

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x):
        """One call."""
        return nn.functional.gelu(x + self.bias)


def get_inputs():
    """Fresh inputs of one call."""
    return [torch.randn(8192, 8192)]


def get_init_inputs():
    """What ``Model`` is constructed with."""
    return [8192]

# mypy: ignore-errors
"""Scaled log-softmax over rows of 8192 x 8192 numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """The reference."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        """One call."""
        return torch.log_softmax(x * self.scale, dim=-1)


def get_inputs():
    """Fresh inputs of one call."""
    return [torch.randn(8192, 8192)]


def get_init_inputs():
    """What ``Model`` is constructed with."""
    return [2.0]

# mypy: ignore-errors
"""Inner products of rows of 4096 x 4096 numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """The reference."""

    def forward(self, a, b):
        """One call."""
        return torch.sum(a * b, dim=-1)


def get_inputs():
    """Fresh inputs of one call."""
    return [torch.randn(4096, 4096), torch.randn(4096, 4096)]


def get_init_inputs():
    """What ``Model`` is constructed with."""
    return []

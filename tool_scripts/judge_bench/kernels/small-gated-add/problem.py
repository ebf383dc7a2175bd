# mypy: ignore-errors
"""``silu(a) * b + c`` of 4096 x 4096 numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """The reference."""

    def forward(self, a, b, c):
        """One call."""
        return nn.functional.silu(a) * b + c


def get_inputs():
    """Fresh inputs of one call."""
    return [torch.randn(4096, 4096) for _ in range(3)]


def get_init_inputs():
    """What ``Model`` is constructed with."""
    return []

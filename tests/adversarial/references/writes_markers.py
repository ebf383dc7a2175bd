"""Writes files to the home folder, the repository and folders that everybody can write."""

import contextlib
from pathlib import Path

import torch
import torch.nn as nn

PLACES = []  # given

for place in PLACES:
    with contextlib.suppress(OSError):
        Path(place).write_text("left by a reference")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

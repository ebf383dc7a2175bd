"""Looks for processes outside its own sandbox."""

import contextlib
from pathlib import Path

import torch
import torch.nn as nn

PROCESSES = []  # given

for pid in PROCESSES:
    with contextlib.suppress(OSError):
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        raise RuntimeError(f"breached: sees the command line of process {pid}, {len(line)} bytes")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

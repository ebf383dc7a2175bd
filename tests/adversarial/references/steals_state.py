"""Reads the judge's state file and its file of tokens."""

import contextlib

import torch
import torch.nn as nn

FILES = []  # given

for name in FILES:
    with contextlib.suppress(OSError), open(name, "rb") as file:
        raise RuntimeError(f"breached: read {len(file.read())} bytes of {name}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

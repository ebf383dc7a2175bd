"""Reads an API key from the environment of the judge's processes and of a stranger."""

import contextlib
import os
import re
from pathlib import Path

import torch
import torch.nn as nn

PROCESSES = []  # given

for pid in {*PROCESSES, os.getppid()}:
    with contextlib.suppress(OSError):
        if re.search(rb"planted-\d{6}", Path(f"/proc/{pid}/environ").read_bytes()):
            raise RuntimeError("breached: a key is in the environment of another process")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

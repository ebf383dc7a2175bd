"""Signals the judge's processes and a stranger; the signal changes nothing."""

import contextlib
import os
import signal

import torch
import torch.nn as nn

PROCESSES = []  # given

for pid in PROCESSES:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGCONT)
        raise RuntimeError("breached: can signal another process")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

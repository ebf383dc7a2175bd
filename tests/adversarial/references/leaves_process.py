"""Leaves a process that goes on after its job, in a session of its own."""

import os
import time
from pathlib import Path

import torch
import torch.nn as nn

MARK = ""  # given


def work():
    Path("/proc/self/comm").write_text(MARK)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        sum(range(10_000))


if MARK and os.fork() == 0:
    try:
        os.setsid()
        if os.fork() == 0:
            work()
    finally:
        os._exit(0)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

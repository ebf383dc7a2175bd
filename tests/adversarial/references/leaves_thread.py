"""Leaves a thread that goes on after its job."""

import threading
import time
from pathlib import Path

import torch
import torch.nn as nn

MARK = ""  # given


def work():
    Path("/proc/thread-self/comm").write_text(MARK)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        sum(range(10_000))


if MARK:
    threading.Thread(target=work, daemon=True).start()


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

"""Leaves handlers that write files when its process ends."""

import atexit
import contextlib
import os
import signal
import threading
import weakref
from pathlib import Path

import torch
import torch.nn as nn

PLACES = []  # given


def write(*_):
    for place in PLACES:
        with contextlib.suppress(OSError):
            Path(place).write_text("left by a reference")
    os._exit(0)


atexit.register(write)
threading._register_atexit(write)
keep = weakref.finalize(write, write)
signal.signal(signal.SIGTERM, write)
signal.signal(signal.SIGHUP, write)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

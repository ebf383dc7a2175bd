"""Stops the process that started it."""

import contextlib
import os
import signal
import time

import torch
import torch.nn as nn

if os.getppid() > 0:
    with contextlib.suppress(OSError):
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(600)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

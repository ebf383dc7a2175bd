"""Opens TCP connections to the judge and to another server of this machine."""

import contextlib
import socket

import torch
import torch.nn as nn

PORTS = []  # given

for port in PORTS:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        raise RuntimeError(f"breached: connected to port {port}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

"""Connects to a unix socket by the name of its file."""

import contextlib
import socket

import torch
import torch.nn as nn

SOCKET = ""  # given

with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
    client.connect(SOCKET)
    client.sendall(b"hello")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

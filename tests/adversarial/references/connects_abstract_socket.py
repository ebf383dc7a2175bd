"""Connects to a unix socket that has a name but no file."""

import contextlib
import socket

import torch
import torch.nn as nn

ABSTRACT = ""  # given

with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
    client.connect("\0" + ABSTRACT)
    client.sendall(b"hello")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

"""Sends a datagram to a server of this machine."""

import contextlib
import socket

import torch
import torch.nn as nn

UDP_PORT = 9  # given

with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.sendto(b"hello", ("127.0.0.1", UDP_PORT))


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

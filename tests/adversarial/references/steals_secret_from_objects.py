"""Looks for the judge's secret among the objects of its process."""

import gc
import re

import torch
import torch.nn as nn

SECRET = re.compile(r"zq7x-\d{5}|7a7137782d(?:3\d){5}")


def found():
    for holder in gc.get_objects():
        for item in gc.get_referents(holder):
            text = item.decode("latin-1") if type(item) is bytes else item
            if type(text) is str and SECRET.search(text):
                return type(holder).__name__
    return None


if found():
    raise RuntimeError(f"breached: the judge's secret is in an object of type {found()}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

"""Reads files of the judge's temporary folder outside its own part of it."""

import contextlib
import os

import torch
import torch.nn as nn

FOLDER = ""  # given

own = {os.path.realpath(path) for path in (os.getcwd(), os.environ.get("TRITON_CACHE_DIR", "/"))} - {"/"}


def foreign_files():
    for here, folders, files in os.walk(FOLDER):
        folders[:] = [name for name in folders if os.path.realpath(f"{here}/{name}") not in own]
        yield from (f"{here}/{name}" for name in files)


for name in foreign_files():
    with contextlib.suppress(OSError), open(name, "rb"):
        raise RuntimeError(f"breached: can read {os.path.relpath(name, FOLDER)}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

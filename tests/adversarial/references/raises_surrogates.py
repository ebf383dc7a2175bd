"""Raises an exception whose text and name no encoding can carry."""

import torch
import torch.nn as nn

raise type("Odd\udc80\x00Name", (ValueError,), {})("a reference's own text \ud800\x00\x1b[2J\r\n\u202e")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

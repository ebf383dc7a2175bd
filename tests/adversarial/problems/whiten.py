"""Rows brought to mean zero and deviation one, which random normal rows nearly have already."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 8, 8192  # gpu: 4096, 8192


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        centred = x - x.mean(dim=1, keepdim=True)
        return centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []

"""Starts hundreds of processes that sleep."""

import os
import shutil

import torch
import torch.nn as nn

SECONDS = "0"  # given

os.system(f"for i in $(seq 400); do {shutil.which('sleep')} {SECONDS} & done")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []

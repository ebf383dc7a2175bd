"""A running mean that each call changes in place."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running", torch.zeros(features))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.running.mul_(1 - self.momentum).add_(x.mean(dim=0), alpha=self.momentum)
        self.calls += 1
        return torch.relu(x - self.running) * 2.0


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64, 0.1]

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Relu6, gelu, softsign, selu."""

    def __init__(self):
        super().__init__()
        self.relu6_1 = nn.ReLU6()
        self.softsign_2 = nn.Softsign()
        self.selu_3 = nn.SELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.relu6_1(x)
        h2 = F.gelu(h1, approximate="none")
        h3 = self.softsign_2(h2)
        return self.selu_3(h3)


def get_inputs():
    return [
        torch.randn(256, 512),
    ]


def get_init_inputs():
    return []

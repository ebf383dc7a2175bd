import torch
import torch.nn as nn


class Model(nn.Module):
    """Sin, softmin, sort, group norm."""

    def __init__(self):
        super().__init__()
        self.softmin_1 = nn.Softmin(dim=-1)
        self.group_norm_2 = nn.GroupNorm(8, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.sin(x)
        h2 = self.softmin_1(h1)
        h3 = torch.sort(h2, dim=-1).values
        return self.group_norm_2(h3)


def get_inputs():
    return [
        torch.randn(16, 64, 8, 32),
    ]


def get_init_inputs():
    return []

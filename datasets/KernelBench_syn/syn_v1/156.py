import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Einsum channels, softmin, batch norm2d, softmax, instance norm."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.5 * torch.randn(4, 16))
        self.batch_norm2d_2 = nn.BatchNorm2d(16)
        self.instance_norm_3 = nn.InstanceNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nchw,co->nohw", x, self.weight_1)
        h2 = F.softmin(h1, dim=-1)
        h3 = self.batch_norm2d_2(h2)
        h4 = torch.softmax(h3, dim=-1)
        return self.instance_norm_3(h4)


def get_inputs():
    return [
        torch.randn(64, 4, 8, 32),
    ]


def get_init_inputs():
    return []

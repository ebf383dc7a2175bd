import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv transpose2d, triu, einsum channels, glu."""

    def __init__(self):
        super().__init__()
        self.conv_transpose2d_1 = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.weight_2 = nn.Parameter(0.3536 * torch.randn(8, 16))
        self.glu_3 = nn.GLU(dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv_transpose2d_1(x)
        h2 = torch.triu(h1, diagonal=1)
        h3 = torch.einsum("nchw,co->nohw", h2, self.weight_2)
        return self.glu_3(h3)


def get_inputs():
    return [
        torch.randn(16, 16, 8, 32),
    ]


def get_init_inputs():
    return []

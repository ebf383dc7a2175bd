import torch
import torch.nn as nn


class Model(nn.Module):
    """Reflection pad2d, addcmul, conv transpose2d, mean, softplus."""

    def __init__(self):
        super().__init__()
        self.reflection_pad2d_1 = nn.ReflectionPad2d(2)
        self.conv_transpose2d_2 = nn.ConvTranspose2d(32, 4, 4, stride=2, padding=1)
        self.softplus_3 = nn.Softplus(beta=2.0)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.reflection_pad2d_1(x)
        h2 = torch.addcmul(h1, x1, x1, value=0.5)
        h3 = self.conv_transpose2d_2(h2)
        h4 = torch.mean(h3, dim=-1)
        return self.softplus_3(h4)


def get_inputs():
    return [
        torch.randn(16, 32, 12, 14),
        torch.randn(16, 32, 16, 18),
    ]


def get_init_inputs():
    return []

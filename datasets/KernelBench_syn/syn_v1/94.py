import torch
import torch.nn as nn


class Model(nn.Module):
    """Avg pool1d, i0, tanhshrink, baddbmm, norm, index select."""

    def __init__(self):
        super().__init__()
        self.avg_pool1d_1 = nn.AvgPool1d(3, stride=1)
        self.tanhshrink_2 = nn.Tanhshrink()

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, x3: torch.Tensor) -> torch.Tensor:
        h1 = self.avg_pool1d_1(x)
        h2 = torch.i0(h1)
        h3 = self.tanhshrink_2(h2)
        h4 = torch.baddbmm(x1, h3, x2)
        h5 = torch.norm(h4, p=2, dim=-1, keepdim=True)
        return torch.index_select(h5, 1, x3)


def get_inputs():
    return [
        torch.randn(128, 4, 128),
        torch.randn(128, 4, 32),
        torch.randn(128, 126, 32),
        torch.randint(0, 4, (64,)),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Unflatten, soft margin loss, div, var, index select."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, x3: torch.Tensor) -> torch.Tensor:
        h1 = torch.unflatten(x, -1, (4, 512 // 4))
        h2 = F.soft_margin_loss(h1, x1, reduction="none")
        h3 = h2 / x2
        h4 = torch.var(h3, dim=-1, keepdim=True, unbiased=False)
        return torch.index_select(h4, 1, x3)


def get_inputs():
    return [
        torch.randn(512, 512),
        2.0 * torch.randint(0, 2, (512, 4, 128)) - 1.0,
        torch.rand(512, 4, 128) + 0.5,
        torch.randint(0, 4, (32,)),
    ]


def get_init_inputs():
    return []

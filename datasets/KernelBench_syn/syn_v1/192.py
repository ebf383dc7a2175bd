import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Renorm, margin ranking loss, layer norm."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(512)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.renorm(x, p=2, dim=0, maxnorm=5.0)
        h2 = F.margin_ranking_loss(h1, x, x1, margin=0.5, reduction="none")
        return self.layer_norm_1(h2)


def get_inputs():
    return [
        torch.randn(256, 512),
        2.0 * torch.randint(0, 2, (256, 512)) - 1.0,
    ]


def get_init_inputs():
    return []

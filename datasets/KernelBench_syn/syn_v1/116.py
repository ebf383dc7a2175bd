import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Std, log softmax, sigmoid, logit, hinge embedding loss, clamp min."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.std(x, dim=-1, unbiased=True)
        h2 = F.log_softmax(h1, dim=-1)
        h3 = torch.sigmoid(h2)
        h4 = torch.logit(h3)
        h5 = F.hinge_embedding_loss(h4, x1, reduction="none")
        return torch.clamp_min(h5, 0.0)


def get_inputs():
    return [
        torch.randn(512, 512),
        2.0 * torch.randint(0, 2, (512,)) - 1.0,
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Gru, hinge embedding loss, conv1d, logsumexp, addmm."""

    def __init__(self):
        super().__init__()
        self.gru_1 = nn.GRU(32, 32, batch_first=True)
        self.conv1d_2 = nn.Conv1d(32, 32, 5, padding=5 // 2)
        self.weight_3 = nn.Parameter(torch.randn(64))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.gru_1(x)[0]
        h2 = F.hinge_embedding_loss(h1, x1, reduction="none")
        h3 = self.conv1d_2(h2)
        h4 = torch.logsumexp(h3, dim=-1)
        return torch.addmm(self.weight_3, h4, x2)


def get_inputs():
    return [
        torch.randn(128, 32, 32),
        2.0 * torch.randint(0, 2, (128, 32, 32)) - 1.0,
        torch.randn(32, 64),
    ]


def get_init_inputs():
    return []

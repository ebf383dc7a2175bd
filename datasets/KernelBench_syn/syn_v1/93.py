import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softplus, add, igammac, lstm, normalize."""

    def __init__(self):
        super().__init__()
        self.lstm_1 = nn.LSTM(64, 32, batch_first=True)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.softplus(x) + 0.1
        h2 = torch.igammac(h1, x1)
        h3 = self.lstm_1(h2)[0]
        return F.normalize(h3, p=2, dim=-1)


def get_inputs():
    return [
        torch.randn(16, 32, 64),
        torch.rand(16, 32, 64) + 0.5,
    ]


def get_init_inputs():
    return []

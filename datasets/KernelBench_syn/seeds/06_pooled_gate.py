import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Channels gated by what their spatial mean says: squeeze and excitation."""

    def __init__(self, channels: int, hidden: int):
        super().__init__()
        self.squeeze = nn.Linear(channels, hidden)
        self.excite = nn.Linear(hidden, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = F.relu(self.squeeze(x.mean(dim=(2, 3))))
        gate = torch.sigmoid(self.excite(gate))
        return x * gate[:, :, None, None]


def get_inputs():
    return [torch.randn(16, 32, 20, 20)]


def get_init_inputs():
    return [32, 8]

import torch
import torch.nn as nn


class Model(nn.Module):
    """Pixel unshuffle, replication pad2d, aminmax, nansum, gather."""

    def __init__(self):
        super().__init__()
        self.pixel_unshuffle_1 = nn.PixelUnshuffle(2)
        self.replication_pad2d_2 = nn.ReplicationPad2d(2)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.pixel_unshuffle_1(x)
        h2 = self.replication_pad2d_2(h1)
        h3 = torch.aminmax(h2, dim=-1).max
        h4 = torch.nansum(h3, dim=-1)
        return torch.gather(h4, -1, x1)


def get_inputs():
    return [
        torch.randn(32, 4, 28, 20),
        torch.randint(0, 16, (32, 128)),
    ]


def get_init_inputs():
    return []

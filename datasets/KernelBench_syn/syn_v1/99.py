import torch
import torch.nn as nn


class Model(nn.Module):
    """Max pool2d, celu, channel shuffle, sigmoid, batch norm2d."""

    def __init__(self):
        super().__init__()
        self.max_pool2d_1 = nn.MaxPool2d(3, stride=1)
        self.celu_2 = nn.CELU(alpha=1.0)
        self.channel_shuffle_3 = nn.ChannelShuffle(2)
        self.sigmoid_4 = nn.Sigmoid()
        self.batch_norm2d_5 = nn.BatchNorm2d(24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.max_pool2d_1(x)
        h2 = self.celu_2(h1)
        h3 = self.channel_shuffle_3(h2)
        h4 = self.sigmoid_4(h3)
        return self.batch_norm2d_5(h4)


def get_inputs():
    return [
        torch.randn(8, 24, 14, 14),
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax over scaled scores, masked positions left out."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = width**-0.5

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores * self.scale
        scores = scores.masked_fill(mask, -1e4)
        return torch.softmax(scores, dim=-1)


batch, heads, tokens, width = 2, 4, 40, 32


def get_inputs():
    mask = torch.rand(batch, 1, tokens, tokens) < 0.2
    return [4.0 * torch.randn(batch, heads, tokens, tokens), mask]


def get_init_inputs():
    return [width]

# mypy: ignore-errors
# ruff: noqa: F821
"""Attention: every product in the tiled kernel, softmax between two of them."""


class ModelNew(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        width = dim // self.heads
        parts = linear(x, self.qkv.weight, self.qkv.bias).view(batch, length, 3, self.heads, width)
        q, k, v = parts.permute(2, 0, 3, 1, 4).reshape(3, batch * self.heads, length, width)
        weights = torch.softmax(matmul(q, k.transpose(1, 2)) * width**-0.5, dim=-1)
        heads = matmul(weights, v).view(batch, self.heads, length, width)
        return linear(heads.transpose(1, 2).reshape(batch, length, dim), self.out.weight, self.out.bias)

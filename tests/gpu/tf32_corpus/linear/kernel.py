# mypy: ignore-errors
# ruff: noqa: F821
"""One linear layer in the tiled kernel."""


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.fc = nn.Linear(features, outputs)

    def forward(self, x):
        return linear(x, self.fc.weight, self.fc.bias)

# mypy: ignore-errors
# ruff: noqa: F821
"""Linear layers with GELU between them, products in the tiled kernel."""


class ModelNew(nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = nn.functional.gelu(linear(x, layer.weight, layer.bias))
        return linear(x, self.layers[-1].weight, self.layers[-1].bias)

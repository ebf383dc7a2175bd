"""AdaExplore: faster Triton kernels for PyTorch modules, by a search that learns from its failures."""

__version__ = "0.1.0"

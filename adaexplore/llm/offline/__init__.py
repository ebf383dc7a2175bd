"""A writer of Triton kernels that needs no model."""

from adaexplore.llm.offline.writer import OfflineWriter

__all__ = ["OfflineWriter"]

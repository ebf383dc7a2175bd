"""Identity of a source up to formatting, comments and docstrings."""

from adaexplore.core.identity import source_identity

__all__ = ["source_identity"]

"""Make text of candidates and references printable, because answers cannot carry lone surrogates."""

from typing import Any


def text(value: str) -> str:
    """Return ``value`` with each lone surrogate replaced by a question mark."""
    return value.encode("utf-8", "replace").decode()


def tree(value: object) -> Any:
    """Return a JSON value with all its strings, keys included, made printable."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {tree(key): tree(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [tree(inner) for inner in value]
    return value

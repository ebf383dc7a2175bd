"""Make text of candidates and references printable, because answers cannot carry lone surrogates."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from pydantic import BaseModel


def text(value: str) -> str:
    """Return ``value`` with each lone surrogate replaced by a question mark."""
    return value.encode("utf-8", "replace").decode()


def tree(value: object) -> Any:
    """Return a JSON value, or a model, with all its strings, keys included, made printable."""
    if type(value) is str:
        return text(value)
    if isinstance(value, dict):
        return {tree(key): tree(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [tree(inner) for inner in value]
    if type(value) is tuple:
        return tuple(map(tree, value))
    if isinstance(value, BaseModel):
        given = {name: tree(getattr(value, name)) for name in value.model_fields_set}
        return value.model_copy(update=given)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: tree(getattr(value, field.name)) for field in fields(value)})
    return value

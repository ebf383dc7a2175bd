"""Nested lists, tuples, dicts and dataclasses of tensors, taken apart into leaves and put together again."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

_T = TypeVar("_T")
_MAX_DEPTH = 32
SCALARS = (bool, int, float, str, type(None))


class UnsupportedTree(Exception):
    """A value other than a tensor, a plain value, or a list, tuple, dict or dataclass of such."""


@dataclass(frozen=True)
class Slot:
    """Stands for a tensor leaf by its index."""

    index: int


@dataclass(frozen=True)
class Tree:
    """A value in which tensors are replaced by slots, and those tensors.

    ``devices`` names the kind of device that each leaf was on. ``unwritten`` has a mask for each leaf:
    elements that were never written. It is empty if that is unknown.
    """

    shape: object
    leaves: tuple[torch.Tensor, ...]
    devices: tuple[str, ...]
    unwritten: tuple[torch.Tensor, ...] = ()

    def signature(self) -> object:
        """Return the structure as JSON data; lists and tuples are the same, slots are ``"T"``."""
        return _signature(self.shape)

    def forms(self) -> list[list[Any]]:
        """Return of each leaf the shape, dtype, kind of device and strides, as JSON data."""
        return [
            [list(leaf.shape), str(leaf.dtype), device, list(leaf.stride())]
            for leaf, device in zip(self.leaves, self.devices, strict=True)
        ]


def take_apart(value: object) -> Tree:
    """Separate tensors from structure; a dataclass becomes the dict of its fields.

    Raises:
        UnsupportedTree: there is a value of another type, which the message names.
    """
    leaves: list[torch.Tensor] = []
    shape = _separate(value, leaves, 0)
    return Tree(shape, tuple(leaves), tuple(leaf.device.type for leaf in leaves))


def _separate(part: object, leaves: list[torch.Tensor], depth: int) -> object:
    """Put slots in place of tensors, which go to ``leaves``; no closure, whose cycle would hold them."""
    if depth > _MAX_DEPTH:
        raise UnsupportedTree(f"the value is nested more than {_MAX_DEPTH} deep")
    if isinstance(part, torch.Tensor):
        if part.layout != torch.strided:
            raise UnsupportedTree(f"a tensor of layout {part.layout}")
        leaves.append(part)
        return Slot(len(leaves) - 1)
    if isinstance(part, SCALARS):
        return part
    if isinstance(part, list | tuple):
        parts = [_separate(item, leaves, depth + 1) for item in part]
        return tuple(parts) if isinstance(part, tuple) else parts
    if isinstance(part, dict):
        # sorted by key, so that equal dicts have their leaves in the same order
        named = {key: _separate(part[key], leaves, depth + 1) for key in sorted(part, key=str)}
        return {key: named[key] for key in part}
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return _separate(_fields(part), leaves, depth)
    raise _unsupported(part)


def _fields(part: Any) -> dict[str, object]:
    return {field.name: getattr(part, field.name, None) for field in dataclasses.fields(part)}


def _unsupported(part: object) -> UnsupportedTree:
    return UnsupportedTree(f"a value of type {type(part).__module__}.{type(part).__qualname__}")


def refuse_dataclasses(value: object) -> None:
    """Raise UnsupportedTree for a dataclass within ``value``: taken apart it would be another argument."""
    if isinstance(value, list | tuple):
        for item in value:
            refuse_dataclasses(item)
    elif isinstance(value, dict):
        for item in value.values():
            refuse_dataclasses(item)
    elif dataclasses.is_dataclass(value):
        raise _unsupported(value)


def require_elements(tree: Tree) -> None:
    """Raise UnsupportedTree for a tensor whose elements cannot be copied and compared."""
    for leaf in tree.leaves:
        for kind in ("meta", "nested", "quantized"):
            if getattr(leaf, f"is_{kind}"):
                raise UnsupportedTree(f"a {kind} tensor")


def put_together(shape: object, leaves: tuple[torch.Tensor, ...]) -> Any:
    return _map(shape, Slot, lambda slot: leaves[slot.index])


def map_leaves(value: object, change: Callable[[torch.Tensor], object]) -> object:
    """Apply ``change`` to each tensor; containers other than lists, tuples and dicts stay."""
    return _map(value, torch.Tensor, change)


def _map(value: Any, kind: type[_T], change: Callable[[_T], object]) -> Any:
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(item, kind, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_map(item, kind, change) for item in value)
    if isinstance(value, dict):
        return {key: _map(item, kind, change) for key, item in value.items()}
    return value


def _signature(shape: object) -> object:
    if isinstance(shape, Slot):
        return "T"
    if isinstance(shape, list | tuple):
        return [_signature(item) for item in shape]
    if isinstance(shape, dict):
        return {str(key): _signature(item) for key, item in shape.items()}
    return {"value": repr(shape)}

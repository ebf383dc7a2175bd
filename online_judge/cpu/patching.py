"""Attributes that are set for the length of a block and put back afterwards."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """A list of attribute assignments that can be undone, last one first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Assign ``owner.name``, remembering what stood in the owner's own namespace."""
        own = vars(owner) if hasattr(owner, "__dict__") else {}
        self._undo.append((owner, name, own.get(name, _MISSING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Undo every assignment."""
        while self._undo:
            owner, name, value = self._undo.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

"""Set attributes for the length of a block and restore them afterwards."""

from typing import Self

_MISSING = object()


class Patches:
    """Attribute assignments that are undone at the end of a ``with`` block, last one first."""

    def __init__(self) -> None:
        self._undo: list[tuple[object, str, object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            owner, name, value = self._undo.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def set(self, owner: object, name: str, value: object) -> None:
        """Assign ``owner.name`` and remember the value in the owner's own namespace."""
        own = vars(owner) if hasattr(owner, "__dict__") else {}
        self._undo.append((owner, name, own.get(name, _MISSING)))
        setattr(owner, name, value)

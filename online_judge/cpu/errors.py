"""Outcomes that only the CPU path knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class NotCheckedError(Exception):
    """The candidate uses something that cannot run without a GPU; says nothing about its quality."""


class IllegalAccessError(RuntimeError):
    """A kernel addressed memory outside every tensor that it was given."""


class DeviceAssertionError(AssertionError):
    """A ``tl.device_assert`` of a kernel launched with ``debug=True``, or a ``tl.assume``, does not hold."""


def not_checked(reason: str) -> Callable[..., NoReturn]:
    """Return a function that raises :class:`NotCheckedError` whatever it is called with."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise NotCheckedError(reason)

    return refuse

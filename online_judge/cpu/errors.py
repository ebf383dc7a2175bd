"""Outcomes of the CPU path only."""

from collections.abc import Callable
from typing import NoReturn


class NotCheckedError(Exception):
    """The candidate uses something that cannot run without a GPU; this says nothing about its quality."""


class IllegalAccessError(RuntimeError):
    """A kernel accessed memory outside all of its tensors."""


class DeviceAssertionError(AssertionError):
    """A ``tl.device_assert`` of a kernel launched with ``debug=True``, or a ``tl.assume``, does not hold."""


def not_checked(reason: str) -> Callable[..., NoReturn]:
    """Return a function that always raises :class:`NotCheckedError`."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise NotCheckedError(reason)

    return refuse

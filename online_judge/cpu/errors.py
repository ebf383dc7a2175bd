"""The outcomes that only the CPU environment knows."""

from __future__ import annotations


class NotCheckedError(Exception):
    """The candidate uses something that cannot run without a GPU; says nothing about its quality."""


class IllegalAccessError(RuntimeError):
    """A kernel addressed memory outside every tensor that it was given."""


class DeviceAssertionError(AssertionError):
    """A ``tl.device_assert`` of a kernel launched with ``debug=True``, or a ``tl.assume``, does not hold."""

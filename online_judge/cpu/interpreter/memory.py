"""The addresses that a kernel sees, and those that it may access."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch

from online_judge.cpu.errors import IllegalAccessError, NotCheckedError
from online_judge.cpu.interpreter.number_formats import Array

_FIRST = 1 << 60  # above every address of the machine
_WINDOW = 1 << 44
_ALIGNMENT = 64


class LaunchMemory:
    """The storages of a launch's tensor arguments, each in the middle of its own wide address window.

    A kernel gets addresses in these windows instead of the machine's. So past the end of a tensor every
    process sees the same, never another tensor. Integers made of pointers hold the machine's addresses, and
    so do pointers made of integers.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        storages = [tensor.untyped_storage() for tensor in tensors]
        spans = [(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages]
        self._blocks = _merged(spans)
        in_order = dict.fromkeys(self._block_of(begin) for begin, _ in spans)
        self._bases = {
            block: _FIRST + number * _WINDOW + _WINDOW // 2 + self._blocks[block][0] % _ALIGNMENT
            for number, block in enumerate(in_order)
        }
        known = [(begin, end, 0) for begin, end in self._blocks]
        for block, base in self._bases.items():
            begin, end = self._blocks[block]
            known.append((base, base + end - begin, (begin - base) % 2**64))
        self._starts, self._ends, self._shifts = np.array(known, dtype=np.uint64).reshape(-1, 3).T
        # the kernel made pointers of integers: it may access other storages too
        self.foreign_pointers = False

    def place(self, pointer: int) -> int:
        """Return the kernel's address for the machine's; unchanged outside of all storages."""
        block = self._block_of(pointer)
        if block < 0 or pointer > self._blocks[block][1]:
            return pointer
        return self._bases[block] + pointer - self._blocks[block][0]

    def actual(self, addresses: Array) -> Array:
        """Return the machine's addresses for the kernel's, an array of uint64, in bounds or not."""
        windows = (addresses - np.uint64(_FIRST)) // np.uint64(_WINDOW)
        count = len(self._blocks)
        if not count:
            return addresses
        rows = count + np.minimum(windows, np.uint64(count - 1)).astype(np.int64)
        return np.where(windows < count, addresses + self._shifts[rows], addresses)

    def locate(self, addresses: Array, mask: Array | Literal[True], itemsize: int, action: str) -> Array:
        """Return the machine's addresses for an access to elements of ``itemsize`` bytes.

        Lanes whose ``mask``, which broadcasts to ``addresses``, is False are not accessed. If another lane is
        outside of every storage, raises IllegalAccessError, or NotCheckedError if it may be legal.
        """
        masked = mask is not True and not mask.all()
        active = addresses[np.broadcast_to(mask, addresses.shape)] if masked else addresses
        if active.size == 0:
            return addresses
        low, high = active.min(), active.max()
        slot = int(np.searchsorted(self._starts, low, side="right")) - 1
        if slot >= 0 and high + np.uint64(itemsize) <= self._ends[slot]:
            shifted: Array = addresses + self._shifts[slot]
            return shifted
        slots = np.searchsorted(self._starts, active, side="right").astype(np.int64) - 1
        outside = slots < 0
        if len(self._ends):
            outside |= active + np.uint64(itemsize) > self._ends[np.maximum(slots, 0)]
        if not outside.any():
            return self.actual(addresses)
        if self.foreign_pointers:
            raise NotCheckedError("pointers made of integers cannot be followed without a GPU")
        raise IllegalAccessError(
            f"illegal memory access: {int(outside.sum())} of {active.size} elements of a {action} lie "
            f"outside the tensors of this launch{self._distance(int(active[outside].min()))}"
        )

    def _block_of(self, pointer: int) -> int:
        return bisect_right(self._blocks, pointer, key=lambda block: block[0]) - 1

    def _distance(self, address: int) -> str:
        row = len(self._blocks) + (address - _FIRST) // _WINDOW
        if not len(self._blocks) <= row < len(self._starts):
            return ""
        start, end = int(self._starts[row]), int(self._ends[row])
        away = f"{address - end} bytes past the end"
        if address < start:
            away = f"{start - address} bytes before the start"
        return f"; the first is {away} of a tensor of {end - start} bytes"


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint ranges that cover ``spans``, in order."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and (begin < merged[-1][1] or begin == merged[-1][0]):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged

"""Which addresses a kernel launch may touch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from online_judge.cpu.errors import IllegalAccessError, NotCheckedError


class LaunchMemory:
    """The storages of a launch's tensor arguments, as sorted address ranges."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        ranges = set()
        for tensor in tensors:
            storage = tensor.untyped_storage()
            ranges.add((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        ordered = sorted(ranges)
        self._starts = np.array([start for start, _ in ordered], dtype=np.uint64)
        self._ends = np.array([end for _, end in ordered], dtype=np.uint64)
        self.foreign_pointers = False

    def check(self, addresses: Any, mask: Any, itemsize: int, action: str) -> None:
        """Refuse an access whose active lanes leave every known storage.

        Args:
            addresses: uint64 array of byte addresses.
            mask: bool array that broadcasts to ``addresses``; False lanes are not accessed.
            itemsize: bytes of one element.
            action: "load", "store" or "atomic", for the message.

        Raises:
            IllegalAccessError: an active lane is outside.
            NotCheckedError: the same, but the kernel made pointers of integers, so that the known
                storages are not all that it may touch.
        """
        active = (
            addresses if mask is True or mask.all() else addresses[np.broadcast_to(mask, addresses.shape)]
        )
        if active.size == 0:
            return
        low, high = active.min(), active.max()
        slot = int(np.searchsorted(self._starts, low, side="right")) - 1
        if slot >= 0 and high + np.uint64(itemsize) <= self._ends[slot]:
            return
        slots = np.searchsorted(self._starts, active, side="right").astype(np.int64) - 1
        outside = slots < 0
        if len(self._ends):
            outside |= active + np.uint64(itemsize) > self._ends[np.maximum(slots, 0)]
        if not outside.any():
            return
        if self.foreign_pointers:
            raise NotCheckedError("pointers made of integers cannot be followed without a GPU")
        raise IllegalAccessError(
            f"illegal memory access: {int(outside.sum())} of {active.size} elements of a {action} lie "
            f"outside the tensors of this launch{self._distance(int(active[outside].min()))}"
        )

    def _distance(self, address: int) -> str:
        slot = int(np.searchsorted(self._starts, np.uint64(address), side="right")) - 1
        if slot < 0:
            return ""
        beyond = address - int(self._ends[slot])
        size = int(self._ends[slot]) - int(self._starts[slot])
        return f"; the first is {beyond} bytes past the end of a tensor of {size} bytes"

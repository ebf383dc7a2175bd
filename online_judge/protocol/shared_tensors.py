"""Blocks of shared memory, each for a tree of tensors, between evaluator and candidate process."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch

from online_judge.common import cuda_driver, trees

_ALIGN = 512
_MOST_KEPT_BYTES = 64 * 2**20
"""Larger blocks are freed at once, because others may need the memory."""
_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Place:
    """Where a tensor is in its shared memory; strides are in elements."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        if 0 in self.shape:
            return 0
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return (last + 1) * int(self.dtype.itemsize)

    def moved(self, by: int) -> Place:
        return replace(self, offset=self.offset + by)


@dataclass(frozen=True)
class Parcel:
    """Description of a tree for the other process; on the CPU a descriptor is sent with it."""

    shape: Any  # structure with slots, see :mod:`online_judge.common.trees`
    places: tuple[Place, ...]  # one per slot
    nbytes: int  # size of the shared memory
    handle: bytes | None  # CUDA handle; None on the CPU
    stays: bool = False  # whether its owner keeps the memory until the other process is gone


def lay_out(tensors: Sequence[torch.Tensor], *, contiguous: bool = False) -> tuple[tuple[Place, ...], int]:
    """Return places for ``tensors``, with the strides that ``clone`` gives, and the bytes needed."""
    form = torch.contiguous_format if contiguous else torch.preserve_format
    places: list[Place] = []
    end = 0
    for tensor in tensors:
        strides = torch.empty_like(tensor, device="meta", memory_format=form).stride()
        place = Place(end, tuple(tensor.shape), tuple(strides), tensor.dtype)
        places.append(place)
        end += -(-max(place.nbytes, 1) // _ALIGN) * _ALIGN
    return tuple(places), max(end, _ALIGN)


class SharedTensors:
    """The owner's side: allocates, fills, exports and frees."""

    def __init__(self, nbytes: int, *, cuda: bool, stays: bool = False) -> None:
        self.nbytes = nbytes
        self.stays = stays
        self.fds: list[int] = []
        self._address = 0
        self._handle: bytes | None = None
        if cuda:
            self._address = cuda_driver.allocate(nbytes)
            self._bytes = cuda_driver.as_bytes(self._address, nbytes)
            # the driver clears nothing: what the reference computed and freed may be there
            cuda_driver.as_bytes(self._address, cuda_driver.whole(nbytes)).zero_()
        else:
            fd = os.memfd_create("shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            try:
                os.ftruncate(fd, nbytes)
            except OSError as error:
                os.close(fd)
                raise torch.OutOfMemoryError(f"{nbytes} bytes to share: {error.strerror}") from None
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _FIXED_SIZE)  # a reader past its end would crash
            self.fds.append(fd)
            self._bytes = _map(fd, nbytes)

    def view(self, place: Place) -> torch.Tensor:
        return _view(self._bytes, place)

    def parcel(self, shape: Any, places: tuple[Place, ...]) -> Parcel:
        """Describe a tree in this memory for the other process, which can use it from now on."""
        if self._address and self._handle is None:
            self._handle = cuda_driver.export(self._address)
        return Parcel(shape, places, self.nbytes, self._handle, self.stays)

    def fill(self, byte: int, nbytes: int) -> None:
        """Overwrite the first ``nbytes``; 0xFF makes every floating number a NaN."""
        self._bytes[:nbytes].fill_(byte)

    def copy_from(self, other: SharedTensors) -> None:
        """Overwrite this memory with that of ``other``, which is as large."""
        self._bytes.copy_(other._bytes)

    def settle(self) -> None:
        """Wait for pending writes, because work of another process does not wait for them."""
        if self._address:
            torch.cuda.synchronize()

    def free(self) -> None:
        """Free the memory; neither side may use it any more."""
        self._bytes = None
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        if self._address:
            torch.cuda.synchronize()
            cuda_driver.free(self._address)
            self._address = 0


class MappedTensors:
    """The candidate process's side: maps shared memory of the evaluator.

    Memory that stays is mapped only once, because in a GPU's driver each mapping waits for all other
    processes.
    """

    _staying: ClassVar[dict[bytes, int]] = {}
    """Addresses by handle."""

    def __init__(self, parcel: Parcel, fds: Sequence[int]) -> None:
        """Map ``parcel``; on the CPU its descriptor is ``fds[0]``, which is closed."""
        self.shape = parcel.shape
        self._address = 0
        if parcel.handle is not None:
            memory = cuda_driver.as_bytes(self._open(parcel.handle, parcel.stays), parcel.nbytes)
        else:
            memory = _map(fds[0], parcel.nbytes)
            os.close(fds[0])
        self.leaves = tuple(_view(memory, place) for place in parcel.places)

    def _open(self, handle: bytes, stays: bool) -> int:
        if not stays:
            self._address = cuda_driver.open_exported(handle)
            return self._address
        if handle not in self._staying:
            self._staying[handle] = cuda_driver.open_exported(handle)
        return self._staying[handle]

    def tree(self) -> Any:
        return trees.put_together(self.shape, self.leaves)

    def close(self) -> None:
        """Unmap memory that does not stay; the tensors must not be used any more."""
        self.leaves = ()
        if self._address:
            torch.cuda.synchronize()
            cuda_driver.close_exported(self._address)
            self._address = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # after an error the process ends, and the GPU may no longer answer
            self.close()


class SharedBlocks:
    """Memory blocks that are shared with one other process repeatedly.

    While many processes use a GPU, its driver takes many milliseconds to allocate, export or free a block.
    """

    def __init__(self, *, cuda: bool) -> None:
        self._cuda = cuda
        self._taken: list[SharedTensors] = []
        self._idle: list[SharedTensors] = []

    def take(self, nbytes: int) -> SharedTensors:
        """Return memory of at least ``nbytes``, with any contents."""
        size = cuda_driver.whole(nbytes)
        stays = size <= _MOST_KEPT_BYTES
        # last in, first out: inputs and outputs of one size alternate between blocks
        block = next((block for block in reversed(self._idle) if block.nbytes == size), None)
        if block is None:
            block = SharedTensors(size if stays else nbytes, cuda=self._cuda, stays=stays)
        else:
            self._idle.remove(block)
        self._taken.append(block)
        return block

    def put_back(self) -> None:
        """Take back all blocks; the other process must not use them any more."""
        while self._taken:
            block = self._taken.pop(0)
            if block.stays:
                self._idle.append(block)
            else:
                block.free()

    def free(self) -> None:
        """Free all blocks; the other process must be gone."""
        for block in [*self._taken, *self._idle]:
            block.free()
        self._taken.clear()
        self._idle.clear()


def pack(
    value: Any, *, cuda: bool, take: Callable[[int], SharedTensors] | None = None
) -> tuple[SharedTensors, Parcel]:
    """Copy a tree into shared memory: new, or from ``take``, which gets a number of bytes.

    Raises UnsupportedTree if a part of it cannot be sent.
    """
    tree = trees.take_apart(value)
    trees.require_elements(tree)
    places, nbytes = lay_out(tree.leaves)
    shared = SharedTensors(nbytes, cuda=cuda) if take is None else take(nbytes)
    for leaf, place in zip(tree.leaves, places, strict=True):
        shared.view(place).copy_(leaf.detach())
    return shared, shared.parcel(tree.shape, places)


def _map(fd: int, nbytes: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(fd, nbytes), dtype=torch.uint8)


def _view(memory: torch.Tensor, place: Place) -> torch.Tensor:
    part = memory[place.offset : place.offset + place.nbytes].view(place.dtype)
    return torch.as_strided(part, place.shape, place.strides)

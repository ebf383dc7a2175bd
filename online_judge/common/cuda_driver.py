"""Calls of the CUDA driver for sharing memory between processes.

Memory for a candidate process comes straight from the driver, not from torch's caching allocator. A handle
exports the whole block of the allocation, so nothing else may be in that block. And torch's own sharing keeps
a block alive until the receiver gives it back, which a killed candidate process never does.
"""

import ctypes
from functools import cache

import torch

HANDLE_BYTES = 64
BLOCK_BYTES = 2 * 2**20  # smaller allocations may share a block and so a handle
_LAZY_PEER_ACCESS = 1
_SCARCE = 0.25
# illegal address, misaligned address, invalid address space, invalid program counter
_ILLEGAL_ACCESS = frozenset({700, 716, 717, 718})


class DriverError(Exception):
    """A driver call failed."""


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * HANDLE_BYTES),)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libcuda.so.1")
    library.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
    library.cuMemFree_v2.argtypes = [ctypes.c_uint64]
    library.cuIpcGetMemHandle.argtypes = [ctypes.POINTER(_IpcHandle), ctypes.c_uint64]
    library.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), _IpcHandle, ctypes.c_uint]
    library.cuIpcCloseMemHandle.argtypes = [ctypes.c_uint64]
    library.cuCtxSynchronize.argtypes = []
    return library


@cache
def _make_context_current() -> None:
    """Let torch's first allocation make the context current that the driver works on."""
    torch.zeros(1, device="cuda")


def _call(name: str, *arguments: object) -> None:
    _make_context_current()
    code = int(getattr(_library(), name)(*arguments))
    if code != 0:
        raise DriverError(f"{name} failed with CUDA error {code}")


def free_cache_if_scarce(needed: int = 0) -> None:
    """Give back torch's cached memory if other processes may lack memory; this takes a while.

    They may lack it if less than ``needed`` bytes are free, or less than a share of all.
    """
    free, total = torch.cuda.mem_get_info()
    if free < max(_SCARCE * total, needed):
        torch.cuda.empty_cache()


def whole(nbytes: int) -> int:
    """Return the size of an allocation for ``nbytes``; a process that opens it sees all of that."""
    return -(-nbytes // BLOCK_BYTES) * BLOCK_BYTES


def allocate(nbytes: int) -> int:
    """Return the address of a fresh allocation in torch's current context."""
    address = ctypes.c_uint64()
    try:
        _call("cuMemAlloc_v2", ctypes.byref(address), whole(nbytes))
    except DriverError:  # torch may hold memory that it does not use
        torch.cuda.empty_cache()
        _call("cuMemAlloc_v2", ctypes.byref(address), whole(nbytes))
    return address.value


def free(address: int) -> None:
    _call("cuMemFree_v2", address)


def export(address: int) -> bytes:
    """Return a handle with which another process can map the allocation at ``address``."""
    handle = _IpcHandle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), address)
    return bytes(handle)


def open_exported(handle: bytes) -> int:
    """Map another process's allocation; return its address here."""
    address, exported = ctypes.c_uint64(), _IpcHandle.from_buffer_copy(handle)
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), exported, _LAZY_PEER_ACCESS)
    return address.value


def close_exported(address: int) -> None:
    _call("cuIpcCloseMemHandle", address)


def has_illegal_access() -> bool:
    """Return True if a kernel accessed memory illegally; then the context is lost."""
    return int(_library().cuCtxSynchronize()) in _ILLEGAL_ACCESS


class _Block:
    """Device memory that ``torch.as_tensor`` accepts without a copy."""

    def __init__(self, address: int, nbytes: int) -> None:
        memory = {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "strides": None}
        self.__cuda_array_interface__ = memory | {"version": 3}


def as_bytes(address: int, nbytes: int) -> torch.Tensor:
    """Return a uint8 tensor over device memory, which it does not own."""
    return torch.as_tensor(_Block(address, nbytes), device="cuda")

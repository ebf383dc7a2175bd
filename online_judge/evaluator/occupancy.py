"""How many warps of a kernel a multiprocessor can hold at a time."""

from __future__ import annotations

from typing import Any

_WARP = 32
_REGISTER_UNIT = 256  # registers are given to warps in portions of so many
_WARP_UNIT = 4  # and to so many warps at a time
_SHARED_UNIT = 128
_SYSTEM_SHARED = 1024  # bytes that a thread block needs besides its own, since compute capability 8.0
# Thread blocks that a multiprocessor may hold, by compute capability; from the CUDA C++ Programming Guide,
# table "Technical Specifications per Compute Capability".
_BLOCKS = {
    (7, 0): 32,
    (7, 5): 16,
    (8, 0): 32,
    (8, 6): 16,
    (8, 7): 16,
    (8, 9): 24,
    (9, 0): 32,
    (10, 0): 32,
    (12, 0): 24,
}
_FEWEST_BLOCKS = 16


def occupancy(registers: int, shared_bytes: int, warps: int, properties: Any) -> float | None:
    """Resident warps as a share of the most that a multiprocessor may hold, however large the grid is.

    The formula is that of NVIDIA's CUDA Occupancy Calculator: thread blocks are limited by their number, by
    warps, by registers (given to warps of 32 threads in portions of 256, to four warps at a time) and by
    shared memory (in portions of 128 bytes, and 1 KiB more a block since compute capability 8.0).

    Args:
        registers: a thread.
        shared_bytes: a thread block.
        warps: a thread block.
        properties: ``torch.cuda.get_device_properties``.

    Returns:
        None where the properties lack what is needed.
    """
    threads = _value(properties, "max_threads_per_multi_processor")
    file = _value(properties, "regs_per_multiprocessor")
    memory = _value(properties, "shared_memory_per_multiprocessor")
    if warps <= 0 or not (threads and file and memory):
        return None
    capability = (_value(properties, "major"), _value(properties, "minor"))
    most_warps = threads // _WARP
    blocks = min(_BLOCKS.get(capability, _FEWEST_BLOCKS), most_warps // warps)
    if registers > 0:
        a_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        blocks = min(blocks, file // a_warp // _WARP_UNIT * _WARP_UNIT // warps)
    system = _SYSTEM_SHARED if capability >= (8, 0) else 0
    a_block = -(-shared_bytes // _SHARED_UNIT) * _SHARED_UNIT + system
    if a_block > 0:
        blocks = min(blocks, memory // a_block)
    return blocks * warps / most_warps


def _value(properties: Any, name: str) -> int:
    return int(getattr(properties, name, 0) or 0)

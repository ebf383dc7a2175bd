"""Where one call of a candidate spends its time, and what its kernels occupy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["memory", "compute", "launch"]
"""What limits a call: bytes moved, operations done, or the host that cannot keep the GPU busy."""


@dataclass(frozen=True)
class KernelProfile:
    """All launches of one kernel in a call, those of libraries included.

    What is None could not be found out: the compiler tells it of the candidate's own Triton kernels alone.

    Attributes:
        name: of the kernel, at most 80 characters.
        calls: launches in one call of the model.
        us: GPU time of all of them, microseconds.
        share: of the call's GPU time, 0 to 1.
        own: whether it is one of the candidate's own Triton kernels.
        registers: a thread.
        spills: 4-byte registers a thread that were spilled to memory.
        shared_bytes: shared memory of one program (thread block).
        warps: of one program.
        programs: in the largest grid of a launch.
        occupancy: most warps that a multiprocessor can hold at a time, as a share of its limit, 0 to 1.
    """

    name: str
    calls: int
    us: float
    share: float
    own: bool = False
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    warps: int | None = None
    programs: int | None = None
    occupancy: float | None = None


@dataclass(frozen=True)
class Profile:
    """One call of a candidate on a GPU, as its own process tells; good for prompts, not for scores.

    Attributes:
        kernels: the longest ones, at most eight, longest first.
        gpu_us: summed time of all kernels, copies and fills, microseconds.
        wall_us: microseconds of a call on the host's clock, one call after another.
        bytes: what every solution must move: inputs, weights and outputs, once each.
        flops: of matrix products, convolutions and attention in the reference; 0 where there are none.
        roofline: the least time that bytes and flops allow on this GPU / ``gpu_us``, 0 to 1; None where
            the GPU's peak is not known.
        bound: what limits it; None where the GPU's peak is not known.
        hardware: name of the GPU.
    """

    kernels: tuple[KernelProfile, ...]
    gpu_us: float
    wall_us: float
    bytes: int
    flops: float
    roofline: float | None
    bound: Bound | None
    hardware: str

"""Profile of one call of a candidate: times and occupancy of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["memory", "compute", "launch"]
"""The bottleneck of a call: memory, compute, or the host that cannot keep the GPU busy."""


@dataclass(frozen=True)
class KernelProfile:
    """All launches of one kernel in a call, including kernels of libraries.

    None means unknown: the compiler reports these values only for the candidate's own Triton kernels.

    Attributes:
        name: the kernel's name, at most 80 characters.
        calls: launches in one call of the model.
        us: total GPU time of them, microseconds.
        share: share of the call's GPU time, 0 to 1.
        own: whether it is one of the candidate's own Triton kernels.
        registers: registers per thread.
        spills: 4-byte registers per thread that were spilled to memory.
        shared_bytes: shared memory of one program (thread block).
        warps: warps of one program.
        programs: number of programs in the largest grid of a launch.
        occupancy: maximum resident warps of a multiprocessor, as a share of its limit, 0 to 1.
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
    """One call of a candidate on a GPU, as reported by its own process; for prompts, not for scores.

    Attributes:
        kernels: the longest ones, at most eight, longest first.
        gpu_us: summed time of all kernels, copies and fills, microseconds.
        wall_us: microseconds of a call by the host's clock, with calls one after another.
        bytes: bytes that every solution must move: inputs, weights and outputs, once each.
        flops: operations of matrix products, convolutions and attention in the reference; 0 without any.
        roofline: minimum time for bytes and flops on this GPU / ``gpu_us``, 0 to 1; None if the GPU's peak is
            unknown.
        bound: the bottleneck; None if the GPU's peak is unknown.
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

"""How long fixed work takes now: whether GPU or host are slower than at another time."""

from __future__ import annotations

from typing import NamedTuple


class Pace(NamedTuple):
    """Milliseconds of fixed work."""

    flush: float  # a write of twice the L2 cache: memory bandwidth
    spin: float  # clock cycles of the GPU
    launch: float  # a launch by the host

    def slowdown_since(self, then: Pace) -> float:
        """Return how many times as long the work takes that slowed down most; at least 1."""
        return max(1.0, *(now / before for now, before in zip(self, then, strict=True)))

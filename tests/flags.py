"""Flags as a judge writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from adaexplore.core.judging.flags import Flag, ProblemFlag


def flags_metadata(kernel: Sequence[Flag] = (), problem: Sequence[ProblemFlag] = ()) -> dict[str, Any]:
    """Return the keys of a verdict's metadata; flags that were not raised have none."""
    found: dict[str, Any] = {}
    for name, flags in (("integrity", kernel), ("problem_flags", problem)):
        if flags:
            found |= {
                name: [flag.id for flag in flags],
                f"{name}_evidence": [asdict(flag) for flag in flags],
            }
    return found

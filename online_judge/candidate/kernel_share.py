"""Where one call spends its GPU time, and what that says about the candidate's own kernels."""

from __future__ import annotations

import logging
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from online_judge.candidate.launches import Launches
from online_judge.verdict.flags import Flag

log = logging.getLogger(__name__)

_TOP = 8
_MAX_NAME = 120
_LIBRARY_SHARE = 0.5
_NUMBERED = re.compile(r"_\d+$")  # torch.compile numbers the kernels that it takes over


@dataclass(frozen=True)
class KernelTime:
    """All runs of one kernel in a call."""

    name: str
    ms: float
    count: int


@dataclass(frozen=True)
class KernelShare:
    """One call's GPU time.

    Attributes:
        own: share of the time in the candidate's own Triton kernels, 0 to 1.
        total_ms: summed time of all kernels, copies and fills.
        streams: distinct CUDA streams used.
        kernels: the longest ones, longest first.
    """

    own: float
    total_ms: float
    streams: int
    kernels: tuple[KernelTime, ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_claim` reads."""
        return {
            "own": self.own,
            "total_ms": self.total_ms,
            "streams": self.streams,
            "kernels": [[kernel.name, kernel.ms, kernel.count] for kernel in self.kernels],
        }

    @classmethod
    def from_claim(cls, claim: object) -> KernelShare | None:
        """What a candidate process says; None where it says nothing that can be read."""
        if not isinstance(claim, dict) or not _is_number(claim.get("own")):
            return None
        listed = claim.get("kernels")
        kernels = tuple(
            KernelTime(str(part[0])[:_MAX_NAME], float(part[1]), int(part[2]))
            for part in (listed[:_TOP] if isinstance(listed, list) else [])
            if isinstance(part, list) and len(part) == 3 and _is_number(part[1]) and _is_number(part[2])
        )
        total = float(claim["total_ms"]) if _is_number(claim.get("total_ms")) else 0.0
        streams = int(claim["streams"]) if _is_number(claim.get("streams")) else 0
        return cls(min(float(claim["own"]), 1.0), total, streams, kernels)


def profile_share(call: Callable[[], object], own_names: Collection[str]) -> KernelShare | None:
    """Profile one call; it should have run before, so that nothing is compiled or tuned in it.

    Args:
        call: what to run.
        own_names: the candidate's kernels, see ``LaunchMeter.kernel_names``.

    Returns:
        None where CUPTI does not work or saw nothing.
    """
    if not torch.cuda.is_available():
        return None
    try:
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            call()
            torch.cuda.synchronize()
        events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    except RuntimeError as error:  # a call that fails by itself will fail again where it counts
        log.warning("the profiler does not work here: %s", error)
        return None
    runs = [(e.name, e.time_range.elapsed_us() / 1000.0, e.device_resource_id) for e in events]
    return summarise(runs, own_names)


def summarise(runs: Collection[tuple[str, float, int]], own_names: Collection[str]) -> KernelShare | None:
    """The share from single runs: kernel name, milliseconds, stream."""
    times: dict[str, list[float]] = defaultdict(list)
    for name, ms, _ in runs:
        times[name].append(ms)
    total = sum(map(sum, times.values()))
    if total <= 0:
        return None
    known = set(own_names)
    own = sum(sum(ms) for name, ms in times.items() if {name, plain_name(name)} & known)
    kernels = [KernelTime(name[:_MAX_NAME], sum(ms), len(ms)) for name, ms in times.items()]
    return KernelShare(
        own=own / total,
        total_ms=total,
        streams=len({stream for _, _, stream in runs}),
        kernels=tuple(sorted(kernels, key=lambda kernel: -kernel.ms)[:_TOP]),
    )


def plain_name(name: str) -> str:
    """A kernel's name without the number that ``torch.compile`` gives it."""
    return _NUMBERED.sub("", name)


def flags(
    launches: Launches, share: KernelShare | None, *, passed_without_kernels: bool | None
) -> list[Flag]:
    """What the claims about a candidate's kernels amount to.

    Args:
        launches: of one call.
        share: of one call; None where it was not measured.
        passed_without_kernels: whether the outputs were right without the own kernels, on inputs of which no
            trivial answer is right; None where that was not tried.
    """
    found = []
    ran = launches.total > 0 or (share is not None and share.own > 0)
    hidden = "graph" in launches.unseen or ("compile" in launches.unseen and launches.defined > 0)
    blind = launches.extension or (hidden and share is None)
    if not ran and not blind:
        has = f"none of its {launches.defined} @triton.jit functions" if launches.defined else "no kernel"
        found.append(Flag("no_own_kernel", f"a call launches {has}{_longest(share)}"))
    if passed_without_kernels and launches.total > 0:
        names = ", ".join(launches.names[:4])
        found.append(
            Flag("decoy_kernel", f"the outputs are right without {names} ({launches.total} launches)")
        )
    if share is not None and share.own < _LIBRARY_SHARE and not launches.extension:
        found.append(
            Flag("library_bound", f"{share.own:.0%} of GPU time in its own kernels{_longest(share)}")
        )
    return found


def _longest(share: KernelShare | None) -> str:
    if share is None or not share.kernels:
        return ""
    return f"; longest: {share.kernels[0].name[:80]}, {share.kernels[0].ms:.4f} of {share.total_ms:.4f} ms"


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value < 1e15

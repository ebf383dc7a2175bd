"""What a candidate process tells of its kernels, checked and cut to size; imports no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from online_judge.common import printable

MAX_NAMED = 64
MAX_NAME = 120
MAX_LISTED = 8
_MAX_COUNT = 10**9
_NUMBERED = re.compile(r"_\d+$")  # torch.compile numbers the kernels that it takes over

Unseen = Literal["extension", "compile", "graph"]
_UNSEEN: tuple[Unseen, ...] = ("extension", "compile", "graph")


@dataclass(frozen=True)
class Launches:
    """What one call launched of the candidate's own Triton kernels."""

    counts: dict[str, int]  # by kernel name and grid, ``name[x, y, z]``; at most ``MAX_NAMED``
    total: int  # launches of all of them
    defined: int  # ``@triton.jit`` functions of the candidate that exist, device functions included
    # why own kernels may run unseen: a compiled ``extension``, ``torch.compile``, the replay of a CUDA graph
    unseen: tuple[Unseen, ...] = ()

    @property
    def extension(self) -> bool:
        return "extension" in self.unseen

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.partition("[")[0] for key in self.counts))

    def to_json(self) -> dict[str, Any]:
        counts = dict(list(self.counts.items())[:MAX_NAMED])
        return {"counts": counts, "total": self.total, "defined": self.defined, "unseen": list(self.unseen)}

    @classmethod
    def from_claim(cls, claim: object) -> Launches:
        """Read what a candidate process says; whatever cannot be read counts as nothing launched."""
        data = claim if isinstance(claim, dict) else {}
        listed = data.get("counts")
        pairs = list(listed.items())[:MAX_NAMED] if isinstance(listed, dict) else []
        counts = {printable.text(str(name)[:MAX_NAME]): _number(count) for name, count in pairs}
        named = data.get("unseen")
        unseen = tuple(kind for kind in _UNSEEN if isinstance(named, list) and kind in named)
        return cls(counts, _number(data.get("total")), _number(data.get("defined")), unseen)


@dataclass(frozen=True)
class Resources:
    """What the compiler gave one kernel; None where it does not say."""

    registers: int | None  # a thread
    spills: int | None  # 4-byte registers a thread that lie in memory
    shared_bytes: int | None  # of one program
    warps: int | None  # of one program
    programs: int = 0  # in the largest grid that was launched

    def to_json(self) -> list[int | None]:
        return [self.registers, self.spills, self.shared_bytes, self.warps, self.programs]

    @classmethod
    def from_claim(cls, claim: object) -> Resources | None:
        """Read what a candidate process says; None where it cannot be read."""
        if not isinstance(claim, list) or len(claim) != 5:
            return None
        told = [value if type(value) is int and 0 <= value <= _MAX_COUNT else None for value in claim]
        return cls(told[0], told[1], told[2], told[3], told[4] or 0)


@dataclass(frozen=True)
class KernelTime:
    name: str
    ms: float
    count: int


@dataclass(frozen=True)
class KernelShare:
    """One call's GPU time."""

    own: float  # share of the time in the candidate's own Triton kernels, 0 to 1
    total_ms: float  # summed time of all kernels, copies and fills
    streams: int  # distinct CUDA streams used
    kernels: tuple[KernelTime, ...]  # the longest ones, longest first

    def to_json(self) -> dict[str, Any]:
        return {
            "own": self.own,
            "total_ms": self.total_ms,
            "streams": self.streams,
            "kernels": [[kernel.name, kernel.ms, kernel.count] for kernel in self.kernels],
        }

    @classmethod
    def from_claim(cls, claim: object) -> KernelShare | None:
        """Read what a candidate process says; None where it cannot be read."""
        if not isinstance(claim, dict) or not _is_number(claim.get("own")):
            return None
        listed = claim.get("kernels")
        kernels = tuple(
            KernelTime(printable.text(str(part[0])[:MAX_NAME]), float(part[1]), int(part[2]))
            for part in (listed[:MAX_LISTED] if isinstance(listed, list) else [])
            if isinstance(part, list) and len(part) == 3 and _is_number(part[1]) and _is_number(part[2])
        )
        total = float(claim["total_ms"]) if _is_number(claim.get("total_ms")) else 0.0
        streams = int(claim["streams"]) if _is_number(claim.get("streams")) else 0
        return cls(min(float(claim["own"]), 1.0), total, streams, kernels)


def plain_name(name: str) -> str:
    """Return a kernel's name without the number that ``torch.compile`` gives it."""
    return _NUMBERED.sub("", name)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, min(value, _MAX_COUNT))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e15

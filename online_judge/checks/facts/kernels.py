"""A candidate process's claims about its kernels, checked and truncated; imports no torch."""

import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field

from online_judge.checks.facts.findings import adapter_of
from online_judge.common import printable

MAX_NAMED = 64
MAX_NAME = 120
MAX_LISTED = 8
_MAX_COUNT = 10**9
_NUMBERED = re.compile(r"_\d+$")  # torch.compile numbers the kernels that it takes over

Unseen = Literal["extension", "compile", "graph"]
Name = Annotated[str, AfterValidator(lambda text: text[:MAX_NAME])]
Count = Annotated[int, Field(strict=True, ge=0), AfterValidator(lambda count: min(count, _MAX_COUNT))]
Number = Annotated[float, Field(strict=True, ge=0, lt=1e15)]


@dataclass(frozen=True)
class _Claim:
    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_claim(cls, claim: object) -> Self | None:
        """Read a candidate process's claim; None if it is unreadable."""
        try:
            return adapter_of(cls).validate_python(printable.tree(claim))
        except ValueError:
            return None


@dataclass(frozen=True)
class Launches(_Claim):
    """One call's launches of the candidate's own Triton kernels."""

    # by kernel name and grid, ``name[x, y, z]``
    counts: Annotated[dict[Name, Count], AfterValidator(lambda counts: dict([*counts.items()][:MAX_NAMED]))]
    total: Count  # launches of all of them
    defined: Count  # ``@triton.jit`` functions of the candidate that exist, device functions included
    # why own kernels may run unseen: a compiled ``extension``, ``torch.compile``, the replay of a CUDA graph
    unseen: tuple[Unseen, ...] = ()

    @property
    def extension(self) -> bool:
        return "extension" in self.unseen

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.partition("[")[0] for key in self.counts))

    @classmethod
    def from_claim(cls, claim: object) -> Self:
        """Read a candidate process's claim; an unreadable one counts as no launches."""
        return super().from_claim(claim) or cls({}, 0, 0)


@dataclass(frozen=True)
class Resources(_Claim):
    """Resources that the compiler gave one kernel; None if unknown."""

    registers: Count | None  # a thread
    spills: Count | None  # spilled 4-byte registers per thread
    shared_bytes: Count | None  # of one program
    warps: Count | None  # of one program
    programs: Count = 0  # in the largest grid that was launched


class KernelTime(NamedTuple):
    name: Name
    ms: Number
    count: Count  # type: ignore[assignment]  # which hides the method of tuples


@dataclass(frozen=True)
class KernelShare(_Claim):
    """One call's GPU time."""

    # share of the time in the candidate's own Triton kernels, 0 to 1
    own: Annotated[Number, AfterValidator(lambda share: min(share, 1.0))]
    total_ms: Number  # summed time of all kernels, copies and fills
    streams: Count  # distinct CUDA streams used
    # the longest kernels, longest first
    kernels: Annotated[tuple[KernelTime, ...], AfterValidator(lambda kernels: kernels[:MAX_LISTED])]


def plain_name(name: str) -> str:
    """Return a kernel's name without the number that ``torch.compile`` gives it."""
    return _NUMBERED.sub("", name)

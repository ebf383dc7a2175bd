"""Do the candidate's own Triton kernels do the work?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Severity
from online_judge.checks.facts.kernels import KernelShare, Launches

_LIBRARY_SHARE = 0.5


class KernelUse(CheckFact):
    """A candidate's kernels in one call; None means unknown."""

    MEASURED_BY: ClassVar = "candidate.launches.LaunchMeter.launches"

    launches: Launches
    share: KernelShare | None
    # tried on inputs for which no trivial answer is right
    passed_without_kernels: bool | None


NO_OWN_KERNEL = FlagKind(
    "no_own_kernel",
    Severity.SUSPECT,
    "how many `@triton.jit` functions the source has; none is launched; the longest kernel of a call",
    "read the kernel: a library or PyTorch does the work",
)
DECOY_KERNEL = FlagKind(
    "decoy_kernel",
    Severity.SUSPECT,
    "the kernels without which the outputs are right as well",
    "read the kernel: its own kernels may do nothing",
)
LIBRARY_BOUND = FlagKind(
    "library_bound",
    Severity.NOTE,
    "share of GPU time in the kernel's own functions (below half); the longest kernel",
    "credit the library for most of the speed",
)


def _find(fact: KernelUse) -> Iterator[Found]:
    launches, share = fact.launches, fact.share
    ran = launches.total > 0 or (share is not None and share.own > 0)
    hidden = "graph" in launches.unseen or ("compile" in launches.unseen and launches.defined > 0)
    blind = launches.extension or (hidden and share is None)
    if not ran and not blind:
        has = f"none of its {launches.defined} @triton.jit functions" if launches.defined else "no kernel"
        yield NO_OWN_KERNEL.found(f"a call launches {has}{_longest(share)}")
    if fact.passed_without_kernels and launches.total > 0:
        names = ", ".join(launches.names[:4])
        yield DECOY_KERNEL.found(f"the outputs are right without {names} ({launches.total} launches)")
    if share is not None and share.own < _LIBRARY_SHARE and not launches.extension:
        yield LIBRARY_BOUND.found(f"{share.own:.0%} of GPU time in its own kernels{_longest(share)}")


def _longest(share: KernelShare | None) -> str:
    if share is None or not share.kernels:
        return ""
    return f"; longest: {share.kernels[0].name[:80]}, {share.kernels[0].ms:.4f} of {share.total_ms:.4f} ms"


CHECK = Check((NO_OWN_KERNEL, DECOY_KERNEL, LIBRARY_BOUND), (KernelUse,), _find)

"""What does a candidate change in its process, and what does it leave running?"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Observation, Severity
from online_judge.common import printable

_MAX_PATCHED = 20
_MAX_SWITCHED = 12
_MAX_BACKGROUND = 8
_MAX_NAME = 120
_MAX_SWITCH = 100


class ProcessChanges(Observation):
    """A candidate's changes in its process; claims of that process."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._observe"

    patched: tuple[str, ...] = ()  # the first names of replaced functions
    patched_count: int = 0  # how many were replaced
    switched: tuple[str, ...] = ()  # global flags of torch that were changed, with both values
    background: tuple[str, ...] = ()  # threads and processes that go on after a call

    @classmethod
    def from_claim(cls, claim: Mapping[str, Any]) -> Self:
        """Read the answer to :class:`~online_judge.protocol.orders.Observe`; non-lists count as empty."""
        names = claim.get("patched")
        return cls(
            patched=_texts(names, _MAX_PATCHED, _MAX_NAME),
            patched_count=len(names) if isinstance(names, list) else 0,
            switched=_texts(claim.get("global_flags"), _MAX_SWITCHED, _MAX_SWITCH),
            background=_texts(claim.get("background"), _MAX_BACKGROUND, _MAX_NAME),
        )


class LeftRunning(CheckFact):
    MEASURED_BY: ClassVar = "processes.supervisor._orphans"
    processes: int  # of the candidate that still ran after their starter had ended


PATCHED_FUNCTIONS = FlagKind(
    "patched_functions",
    Severity.SUSPECT,
    "names of functions of torch, Triton, Python or the judge that were replaced; signal handlers",
    "find out why; count no speedup before",
)
BACKGROUND_THREADS = FlagKind(
    "background_threads",
    Severity.SUSPECT,
    "each thread and its code, each new native thread or process, or the number of processes left",
    "find out what they do; count no speedup before",
)
GLOBAL_FLAGS = FlagKind(
    "global_flags",
    Severity.NOTE,
    "each switch of torch that was changed, old and new value; the judge puts it back",
    "set the switch yourself where the kernel needs it",
)


def _find(fact: ProcessChanges | LeftRunning) -> Iterator[Found]:
    if isinstance(fact, LeftRunning):
        if fact.processes:
            yield BACKGROUND_THREADS.found(f"{fact.processes} processes were left running")
        return
    if fact.patched_count:
        hidden = fact.patched_count - len(fact.patched)
        more = f" and {hidden} more" if hidden > 0 else ""
        yield PATCHED_FUNCTIONS.found(f"replaced: {', '.join(fact.patched)}{more}")
    if fact.switched:
        yield GLOBAL_FLAGS.found("; ".join(fact.switched))
    if fact.background:
        yield BACKGROUND_THREADS.found("; ".join(fact.background))


CHECK = Check[ProcessChanges | LeftRunning](
    (PATCHED_FUNCTIONS, BACKGROUND_THREADS, GLOBAL_FLAGS), (ProcessChanges, LeftRunning), _find
)


def _texts(claim: object, most: int, chars: int) -> tuple[str, ...]:
    listed = claim if isinstance(claim, list) else []
    return tuple(printable.text(str(item)[:chars]) for item in listed[:most])

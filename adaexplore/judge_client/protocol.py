"""The interface of a judge."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from adaexplore.core.environment import Environment, ReferenceFacts
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, DtypeName, ProblemReport

_QUALIFIERS = ("memory_of", "level", "evaluator")
"""Keys of ``sandbox`` that explain another key."""


@dataclass(frozen=True)
class Sandbox:
    """The limits on candidates that a judge reports: active ones, read back, and missing ones.

    ``level`` sums them up in one word (``full``, ``namespaces``, ``none``); ``evaluator`` is the level of
    processes that run references. Both are empty if the judge does not report them.
    """

    in_force: tuple[str, ...]
    missing: tuple[str, ...]
    level: str = ""
    evaluator: str = ""


@dataclass(frozen=True)
class JudgeIdentity:
    device: str = "unknown"  # ``cuda`` or ``cpu``
    hardware: str = "unknown"  # GPU name, or a description of the CPU path
    # the judge's versions of torch, triton and python, if reported
    versions: Mapping[str, str | None] = field(default_factory=dict)
    sandbox: Sandbox | None = None  # the limits on candidates, if reported
    compile_target: str = ""  # the architecture for which it compiles, if reported

    @property
    def triton(self) -> str | None:
        return self.versions.get("triton")

    def to_record(self) -> dict[str, Any]:
        """Return the object for ``environment.json``."""
        told = {"device": self.device, "hardware": self.hardware, "versions": self.versions}
        return told if self.sandbox is None else told | {"sandbox": asdict(self.sandbox)}


def sandbox_of(health: Mapping[str, Any]) -> Sandbox | None:
    """Read ``sandbox`` of ``/health``: one value per limit, false if it is not active."""
    told = health.get("sandbox")
    if not isinstance(told, Mapping):
        return None
    limits = {str(name): told[name] for name in told if name not in _QUALIFIERS}
    return Sandbox(
        tuple(name if value is True else f"{name} {value}" for name, value in limits.items() if value),
        tuple(name for name, value in limits.items() if not value),
        level=str(told.get("level") or ""),
        evaluator=str(told.get("evaluator") or ""),
    )


def unchecked(why: str = "this judge cannot compile") -> CompileReport:
    """Return the report on a candidate that could not be compiled, which counts as no fault."""
    return CompileReport(ok=True, status=Status.NOT_CHECKED, message=why)


class Judge(Protocol):
    """A judge of candidates; thread-safe.

    Methods raise JudgeUnavailableError if nothing answers, and JudgeError if the judge failed in spite of
    retries, which says nothing about the candidate.
    """

    def identity(self) -> JudgeIdentity:
        """Return the judge's identity."""

    def environment(self) -> Environment | None:
        """Return the judge's environment facts; None if the judge does not state them."""

    def check_problem(self, task: Task) -> ReferenceFacts | None:
        """Check the reference before any model request; return the facts for prompts.

        Raises:
            ProblemError: the reference fails, or is too large for the judge's device.
        """

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """Examine a reference thoroughly; the result is in ``traits`` of the report."""

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        """Judge one candidate.

        Args:
            task: the problem.
            source: the candidate.
            best_so_far: the greatest speedup that the search has measured. The judge may stop timing a
                candidate that is clearly slower.

        Raises:
            ProblemError: the reference fails.
        """

    def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
        """Compile one candidate's launches for the judge's target; needs no device, executes no kernel.

        With ``asm`` the report has their PTX. A judge that cannot compile answers ``not_checked``, which is
        no fault.

        Raises:
            ProblemError: the reference fails.
        """

    def profile(self, task: Task, source: str) -> Profile | None:
        """Profile a candidate that passed; None if the judge has no profile.

        That is the case without a GPU, on an older judge, or if the candidate fails now.
        """

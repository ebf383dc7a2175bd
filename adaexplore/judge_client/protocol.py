"""The interface of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from adaexplore.core.environment import Environment, ReferenceFacts
from adaexplore.core.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import DtypeName, ProblemReport

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
    """What a judge says about itself.

    Attributes:
        device: ``cuda`` or ``cpu``.
        hardware: GPU name, or a description of the CPU path.
        versions: the judge's versions of torch, triton and python, if reported.
        sandbox: the limits on candidates, if reported.
    """

    device: str
    hardware: str
    versions: tuple[tuple[str, str], ...] = ()
    sandbox: Sandbox | None = None

    @property
    def triton(self) -> str | None:
        return dict(self.versions).get("triton")

    def to_record(self) -> dict[str, Any]:
        """Return the object for ``environment.json``."""
        told = {"device": self.device, "hardware": self.hardware, "versions": dict(self.versions)}
        return told if self.sandbox is None else told | {"sandbox": asdict(self.sandbox)}

    @classmethod
    def from_record(cls, told: Mapping[str, Any]) -> JudgeIdentity:
        """Read the object of :meth:`to_record`.

        Raises:
            AttributeError, KeyError, TypeError: the object is damaged.
        """
        limits = told.get("sandbox")
        return cls(
            device=str(told.get("device", "unknown")),
            hardware=str(told.get("hardware", "unknown")),
            versions=tuple(sorted(told.get("versions", {}).items())),
            sandbox=None if limits is None else Sandbox(tuple(limits["in_force"]), tuple(limits["missing"])),
        )


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


@dataclass(frozen=True)
class CompileFinding:
    """The result of compiling a candidate's launches without running them.

    Attributes:
        status: ``passed``, or the stage at which the candidate failed; ``not_checked`` if the judge cannot
            check it.
        kernel: the kernel that failed, if one did.
        line: the line of the candidate's source, if known.
        message: the first failure.
        error_name: ``module.Class`` of the exception, if there was one.
    """

    status: Status
    kernel: str | None = None
    line: int | None = None
    message: str = ""
    error_name: str = ""

    @property
    def ok(self) -> bool:
        """Whether no fault was found; a candidate that could not be checked is ok."""
        return self.status in (Status.PASSED, Status.NOT_CHECKED)


class Judge(Protocol):
    """A judge of candidates; thread-safe.

    Methods raise JudgeUnavailableError if nothing answers, and JudgeError if the judge failed in spite of
    retries, which says nothing about the candidate.
    """

    def identity(self) -> JudgeIdentity:
        """Return the judge's identity."""
        ...

    def environment(self) -> Environment | None:
        """Return the judge's environment facts; None if the judge does not state them."""
        ...

    def check_problem(self, task: Task) -> ReferenceFacts | None:
        """Check the reference before any model request; return the facts for prompts.

        Raises:
            ProblemError: the reference fails, or is too large for the judge's device.
        """
        ...

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """Examine a reference thoroughly; the result is in ``traits`` of the report."""
        ...

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
        ...

    def compile(self, task: Task, source: str) -> CompileFinding:
        """Compile one candidate's launches for the judge's target; needs no device, executes no kernel.

        Raises:
            ProblemError: the reference fails.
        """
        ...

    def profile(self, task: Task, source: str) -> Profile | None:
        """Profile a candidate that passed; None if the judge has no profile.

        That is the case without a GPU, on an older judge, or if the candidate fails now.
        """
        ...

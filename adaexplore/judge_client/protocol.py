"""What the run asks of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from adaexplore.core.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import DtypeName, ProblemReport

_QUALIFIERS = ("memory_of", "level", "evaluator")
"""Keys of ``sandbox`` that say how another one is meant."""


@dataclass(frozen=True)
class Sandbox:
    """The limits on candidates that a judge speaks of: those in force, read back, and those that are not.

    ``level`` is all of it in one word (``full``, ``namespaces``, ``none``), ``evaluator`` the same of the
    processes that run references; both are empty where the judge does not tell.
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
        versions: torch, triton and python of the judge, where it tells.
        sandbox: what keeps candidates in, where it tells.
    """

    device: str
    hardware: str
    versions: tuple[tuple[str, str], ...] = ()
    sandbox: Sandbox | None = None


def sandbox_of(health: Mapping[str, Any]) -> Sandbox | None:
    """What ``/health`` says under ``sandbox``: a value a limit, a false one where it is not in force."""
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
    """What compiling a candidate's launches without running them found.

    Attributes:
        status: ``passed``, or the stage at which the candidate failed; ``not_checked`` where the judge
            cannot tell.
        kernel: the kernel that failed, where one did.
        line: of the candidate's source, where it is known.
        message: the first failure.
        error_name: its ``module.Class``, where there was an exception.
    """

    status: Status
    kernel: str | None = None
    line: int | None = None
    message: str = ""
    error_name: str = ""

    @property
    def ok(self) -> bool:
        """Nothing was found against the candidate; what could not be checked is not its fault."""
        return self.status in (Status.PASSED, Status.NOT_CHECKED)


class Judge(Protocol):
    """Judges candidates. Safe to call from several threads."""

    def identity(self) -> JudgeIdentity:
        """Ask the judge what it is.

        Raises:
            JudgeUnavailableError: nothing answers, or it lacks the GPU it would need.
        """
        ...

    def check_problem(self, task: Task) -> None:
        """Have the judge try the reference, before anything is paid.

        Raises:
            ProblemError: the reference fails, or is too large for the judge's device.
            JudgeError: the judge failed.
        """
        ...

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """Have the judge look closely at a reference: ``traits`` of the answer tell what it found.

        Raises:
            JudgeError: the judge failed, or cannot look that closely.
        """
        ...

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        """Judge one candidate.

        Args:
            task: the problem.
            source: the candidate.
            best_so_far: the greatest speedup that the search has measured. The judge may stop measuring a
                candidate that is clearly slower.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge failed in spite of retries; says nothing about the candidate.
        """
        ...

    def compile(self, task: Task, source: str) -> CompileFinding:
        """Compile one candidate's launches for the judge's target; needs no device, executes no kernel.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge failed in spite of retries; says nothing about the candidate.
        """
        ...

    def profile(self, task: Task, source: str) -> Profile | None:
        """Where a candidate that passed spends its time; None where the judge cannot tell.

        That is a judge without a GPU, an older one, or a candidate that fails now.

        Raises:
            JudgeError: the judge failed in spite of retries.
        """
        ...

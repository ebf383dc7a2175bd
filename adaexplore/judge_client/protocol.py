"""What the run asks of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict

_QUALIFIERS = ("memory_of",)
"""Keys of ``sandbox`` that say how another one is meant."""


@dataclass(frozen=True)
class Sandbox:
    """The limits on candidates that a judge speaks of: those in force, read back, and those that are not."""

    in_force: tuple[str, ...]
    missing: tuple[str, ...]


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
    )


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

    def evaluate(self, task: Task, source: str) -> Verdict:
        """Judge one candidate.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge failed in spite of retries; says nothing about the candidate.
        """
        ...

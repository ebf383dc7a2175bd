"""What the run asks of a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict


@dataclass(frozen=True)
class JudgeIdentity:
    """What a judge says about itself.

    Attributes:
        device: ``cuda`` or ``cpu``.
        hardware: GPU name, or a description of the CPU path.
        versions: torch, triton and python of the judge, where it tells.
    """

    device: str
    hardware: str
    versions: tuple[tuple[str, str], ...] = ()


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

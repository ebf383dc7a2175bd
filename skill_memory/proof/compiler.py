"""The compile stage of the configured judge, or of a judge started for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.environment import TritonFacts
from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status
from adaexplore.core.wire import CompileReport
from adaexplore.judge_client.access import open_judge
from adaexplore.judge_client.protocol import Judge
from adaexplore.settings.config import RunConfig

_LIMIT_S = 120


@dataclass(frozen=True)
class Compiler:
    """A compiler of candidates on a judge; JudgeError if the judge failed or has no compile stage."""

    judge: Judge
    triton: str
    target: str

    def __call__(self, reference: str, source: str) -> CompileReport | None:
        """Return the report on ``source``; None if the reference itself fails."""
        task = Task(0, "rule", "rule", reference, "fp32", Path("the reference"))
        try:
            report = self.judge.compile(task, source)
        except ProblemError:
            return None
        if report.status == Status.NOT_CHECKED:
            raise JudgeError(f"{report.message}; use a judge of this version")
        return report

    def facts(self) -> TritonFacts | None:
        """Return the facts about its Triton; None if the judge does not state them."""
        environment = self.judge.environment()
        return None if environment is None else environment.triton


@contextmanager
def open_compiler(config: RunConfig) -> Iterator[Compiler]:
    """Open the compile stage of the judge that ``config`` names, or of one started here on the CPU.

    Raises:
        JudgeError: it cannot be reached or started, or it compiles for another target.
    """
    alone = {
        "judge_device": "cpu",
        "num_processes": 1,
        "parallel_steps": 1,
        "gpu_ids": None,
        "gpu_models": None,
    }
    with open_judge(config.model_copy(update={**alone, "timeout": _LIMIT_S, "tf32": "off"})) as access:
        found, target = access.identity.compile_target or config.compile_target, config.compile_target
        if found != target:
            raise JudgeError(f"the judge compiles for {found}, not for {target}")
        yield Compiler(access.first, access.identity.triton or "unknown", target)

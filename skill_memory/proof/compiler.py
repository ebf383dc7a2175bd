"""The compile stage of the configured judge, or of a judge started for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.environment import TritonFacts
from adaexplore.core.errors import JudgeError, JudgeUnavailableError
from adaexplore.core.task import Task
from adaexplore.core.wire import CompileReport
from adaexplore.judge_client.access import open_judge
from adaexplore.judge_client.protocol import Judge, unchecked
from adaexplore.settings.config import RunConfig

_LIMIT_S = 120


@dataclass(frozen=True)
class Compiler:
    """A compiler of candidates on a judge."""

    judge: Judge
    triton: str
    target: str

    def __call__(self, reference: str, source: str) -> CompileReport:
        """Return the report on ``source``; ``not_checked`` if the judge fails on these two sources.

        Raises:
            JudgeUnavailableError: the judge answers nothing any more.
        """
        task = Task(0, "rule", "rule", reference, "fp32", Path("the reference"))
        try:
            return self.judge.compile(task, source)
        except JudgeUnavailableError:
            raise
        except JudgeError as error:
            return unchecked(str(error))

    def facts(self) -> TritonFacts | None:
        """Return the facts about its Triton; None if the judge does not state them."""
        environment = self.judge.environment()
        return None if environment is None else environment.triton


@contextmanager
def open_compiler(config: RunConfig) -> Iterator[Compiler]:
    """Open the compile stage of the judge that ``config`` names, or of one started here on the CPU.

    Raises:
        JudgeError: it cannot be reached or started, does not compile, or compiles for another target.
    """
    alone = {
        "judge_device": "cpu",
        "num_processes": 1,
        "parallel_steps": 1,
        "gpu_ids": None,
        "gpu_models": None,
    }
    with open_judge(config.model_copy(update={**alone, "timeout": _LIMIT_S, "tf32": "off"})) as access:
        found, target = access.identity.compile_target, config.compile_target
        if not found:
            raise JudgeError("the judge cannot compile without executing; use a judge of this version")
        if found != target:
            raise JudgeError(f"the judge compiles for {found}, not for {target}")
        yield Compiler(access.first, access.identity.triton or "unknown", target)

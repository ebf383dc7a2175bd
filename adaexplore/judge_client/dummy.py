"""``dummy: true``: random metrics without any evaluation, for trying out a configuration."""

from __future__ import annotations

from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.judge_client.protocol import JudgeIdentity


class DummyJudge:
    """Answers at random, the same for the same source and seed; it runs nothing."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def identity(self) -> JudgeIdentity:
        """It is nothing."""
        return JudgeIdentity("dummy", "dummy (random metrics)")

    def check_problem(self, task: Task) -> None:
        """Any problem will do."""

    def evaluate(self, task: Task, source: str) -> Verdict:
        """A random status, and a random speedup where it passed."""
        rng = stream(self._seed, task.key, "dummy", source)
        metadata = {"hardware": "dummy"}
        status = rng.choice([Status.PASSED, Status.PASSED, Status.WRONG_VALUE, Status.COMPILE])
        if status is not Status.PASSED:
            return Verdict(status=status, metadata=metadata)
        speedup = rng.lognormvariate(0.0, 0.5)
        return Verdict(
            status=status,
            metadata=metadata,
            runtime_ms=1.0 / speedup,
            runtime_stats={"mean": 1.0 / speedup, "fast_p": speedup, "baseline_time": 1.0},
        )

"""``dummy: true``: random metrics without evaluation, to try out a configuration."""

import hashlib

from adaexplore.core.environment import Environment, ReferenceFacts
from adaexplore.core.judging.parts import RuntimeStats
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.streams import stream
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, DtypeName, ProblemReport, ProblemTraits
from adaexplore.judge_client.protocol import JudgeIdentity, unchecked


class DummyJudge:
    """A judge with random answers that depend only on source and seed; it runs nothing."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("dummy", "dummy (random metrics)")

    def environment(self) -> Environment | None:
        return None

    def check_problem(self, task: Task) -> ReferenceFacts | None:
        return None

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """Report a problem whose graph is the hash of its text."""
        graph = hashlib.sha256(source.encode()).hexdigest()[:32]
        traits = ProblemTraits(flags=[], elements=0, call_ms=0.0, operators=[], graph=graph)
        return ProblemReport(ok=True, device="cpu", hardware="dummy", traits=traits)

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        """Return a random status, with a random speedup if it is ``passed``."""
        rng = stream(self._seed, task.key, "dummy", source)
        status = rng.choice([Status.PASSED, Status.PASSED, Status.WRONG_VALUE, Status.COMPILE])
        if status is not Status.PASSED:
            return Verdict(status=status, hardware="dummy")
        speedup = rng.lognormvariate(0.0, 0.5)
        return Verdict(
            status=status,
            hardware="dummy",
            timing=RuntimeStats(
                runtime_ms=1.0 / speedup, mean=1.0 / speedup, speedup=speedup, baseline_ms=1.0
            ),
        )

    def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
        return unchecked()

    def profile(self, task: Task, source: str) -> Profile | None:
        return None

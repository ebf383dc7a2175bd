"""Known verdicts on the programs of one task; the judges answer for other programs."""

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from adaexplore.core.environment import ReferenceFacts
from adaexplore.core.judging.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.text.identity import source_identity
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.judge_client.protocol import Judge

T = TypeVar("T")


class Verdicts:
    """The judges with one task's memory of verdicts: no program is judged or profiled twice.

    Programs are compared by :func:`~adaexplore.core.text.identity.source_identity`. Safe to use from several
    threads: a second request for a program that is being judged waits for that verdict. Each request
    carries the greatest speedup among the known verdicts. Methods that ask a judge raise JudgeError if it
    failed, also in an earlier request that they waited for.
    """

    def __init__(self, access: JudgeAccess, task: Task, home: int = 0) -> None:
        """Use the judges of ``access`` for programs of ``task``, number ``home`` first."""
        self._access = access
        self._task = task
        self._home = home
        self._lock = threading.Lock()
        self._verdicts: dict[str, Future[Verdict]] = {}
        self._profiles: dict[str, Future[Profile | None]] = {}
        self._findings: dict[str, Future[CompileReport]] = {}
        self._best_so_far: float | None = None

    def learn(self, source: str, verdict: Verdict) -> None:
        """Store a verdict on ``source``; it replaces an earlier one."""
        self._keep(self._verdicts, source_identity(source), verdict)
        self._compare(verdict)

    def learn_profile(self, source: str, profile: Profile | None) -> None:
        """Store a recorded profile of ``source``."""
        self._keep(self._profiles, source_identity(source), profile)

    def learn_findings(self, findings: Mapping[str, CompileReport]) -> None:
        """Store recorded findings of the judge's compiler, by identity of the source."""
        for name, finding in findings.items():
            self._keep(self._findings, name, finding)

    def known(self, source: str) -> Verdict | None:
        """Return the verdict on a program equal to ``source``; None if unknown or still being judged."""
        with self._lock:
            found = self._verdicts.get(source_identity(source))
        return None if found is None or not found.done() or found.exception() else found.result()

    def check_problem(self) -> ReferenceFacts | None:
        """Have a judge check the reference; return the facts for prompts."""
        with self._access.turn(self._home) as judge:
            return judge.check_problem(self._task)

    def on(self, source: str) -> tuple[Verdict, bool]:
        """Return the verdict on ``source``, and whether the judge was asked for it now."""
        return self._once(self._verdicts, source, partial(self._evaluate, source))

    def on_other_gpus(self, source: str, verdict: Verdict) -> Verdict:
        """Return ``verdict`` with those of the other GPU models, if the kernel is correct on the first."""
        judges = self._access.other_gpus
        if not judges or not verdict.correct or verdict.other_gpus:
            return verdict
        with ThreadPoolExecutor(len(judges)) as pool:
            found = list(pool.map(lambda judge: judge.evaluate(self._task, source), judges.values()))
        others = dict(zip(judges, found, strict=True))
        verdict = verdict.model_copy(update={"other_gpus": others})
        self.learn(source, verdict)
        return verdict

    def profile(self, source: str) -> tuple[Profile | None, bool]:
        """Return the profile of ``source``, None if the judge has none, and whether it was asked now."""
        return self._once(self._profiles, source, lambda judge: judge.profile(self._task, source))

    def compile(self, source: str) -> CompileReport:
        """Return the finding of the judge's compiler about ``source``."""
        return self._once(self._findings, source, lambda judge: judge.compile(self._task, source))[0]

    def findings(self) -> dict[str, CompileReport]:
        """All compiler findings so far, by identity of the source, in the order of requests."""
        with self._lock:
            asked = list(self._findings.items())
        return {name: said.result() for name, said in asked if said.done() and said.exception() is None}

    def _evaluate(self, source: str, judge: Judge) -> Verdict:
        with self._lock:
            best_so_far = self._best_so_far
        verdict = judge.evaluate(self._task, source, best_so_far)
        self._compare(verdict)
        return verdict

    def _compare(self, verdict: Verdict) -> None:
        """Store a new greatest speedup, unless a flag asks for review."""
        speedup = verdict.speedup
        if speedup is None or not 0 < speedup < math.inf or verdict.suspect_flags:
            return
        with self._lock:
            self._best_so_far = max(self._best_so_far or speedup, speedup)

    def _keep(self, known: dict[str, Future[T]], name: str, value: T) -> None:
        future: Future[T] = Future()
        future.set_result(value)
        with self._lock:
            known[name] = future

    def _once(self, known: dict[str, Future[T]], source: str, ask: Callable[[Judge], T]) -> tuple[T, bool]:
        mine: Future[T] = Future()
        with self._lock:
            found = known.setdefault(source_identity(source), mine)
        if found is not mine:
            return found.result(), False
        try:
            with self._access.turn(self._home) as judge:
                mine.set_result(ask(judge))
        except BaseException as error:
            mine.set_exception(error)
            raise
        return mine.result(), True

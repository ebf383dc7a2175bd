"""What is known about the programs of one task, and whom to ask about the others."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from pydantic import TypeAdapter

from adaexplore.core.errors import RecordError
from adaexplore.core.identity import source_identity
from adaexplore.core.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.protocol import CompileFinding, Judge
from adaexplore.records.task_records import TaskRecords

T = TypeVar("T")
_FINDING = TypeAdapter(CompileFinding)


class Verdicts:
    """One task's judges behind a memory: no program is judged, or profiled, twice.

    Programs are compared by :func:`~adaexplore.core.identity.source_identity`. Safe to use from several
    threads: who asks about a program that is being judged waits for that verdict. Each request carries the
    greatest speedup among the verdicts known by then.
    """

    def __init__(self, judges: Sequence[Judge], task: Task) -> None:
        """Ask ``judges`` about programs for ``task``: each time the one that is asked least just then."""
        self._task = task
        self._lock = threading.Lock()
        self._judges = tuple(judges)
        self._busy = [0] * len(self._judges)
        self._verdicts: dict[str, Future[Verdict]] = {}
        self._profiles: dict[str, Future[Profile | None]] = {}
        self._findings: dict[str, Future[CompileFinding]] = {}
        self._best_so_far: float | None = None

    def learn(self, source: str, verdict: Verdict) -> None:
        """Take in a verdict on ``source``, which replaces one that was known."""
        self._keep(self._verdicts, source_identity(source), verdict)
        self._compare(verdict)

    def learn_profile(self, source: str, profile: Profile | None) -> None:
        """Take in what the judge once said about where ``source`` spends its time."""
        self._keep(self._profiles, source_identity(source), profile)

    def learn_findings(self, findings: Mapping[str, CompileFinding]) -> None:
        """Take in what the judge's compiler once said, by identity of the source."""
        for name, finding in findings.items():
            self._keep(self._findings, name, finding)

    def known(self, source: str) -> Verdict | None:
        """The verdict on a program that equals ``source``; None also while it is being judged."""
        with self._lock:
            found = self._verdicts.get(source_identity(source))
        return None if found is None or not found.done() or found.exception() else found.result()

    def check_problem(self) -> None:
        """Have a judge try the reference.

        Raises:
            ProblemError: it cannot be judged.
            JudgeError: the judge failed.
        """
        with self._turn() as judge:
            judge.check_problem(self._task)

    def on(self, source: str) -> tuple[Verdict, bool]:
        """The verdict on ``source``, and whether the judge was asked for it now.

        Raises:
            JudgeError: the judge failed, here or where the same program was being judged.
        """
        return self._once(self._verdicts, source, self._evaluate)

    def profile(self, source: str) -> tuple[Profile | None, bool]:
        """Where ``source`` spends its time, None where the judge cannot tell; and whether it was asked now.

        Raises:
            JudgeError: the judge failed.
        """
        return self._once(self._profiles, source, self._profile)

    def compile(self, source: str) -> CompileFinding:
        """What the judge's compiler says of ``source``.

        Raises:
            JudgeError: the judge failed.
        """
        return self._once(self._findings, source, self._compile)[0]

    def findings(self) -> dict[str, CompileFinding]:
        """All that the compiler said so far, by identity of the source, in the order of the questions."""
        with self._lock:
            asked = list(self._findings.items())
        return {name: said.result() for name, said in asked if said.done() and said.exception() is None}

    def _evaluate(self, source: str) -> Verdict:
        with self._lock:
            best_so_far = self._best_so_far
        with self._turn() as judge:
            verdict = judge.evaluate(self._task, source, best_so_far)
        self._compare(verdict)
        return verdict

    def _compare(self, verdict: Verdict) -> None:
        """Take note of a speedup greater than all before, unless a person should look at it first."""
        speedup = verdict.speedup
        if speedup is None or not 0 < speedup < math.inf or verdict.suspect_flags:
            return
        with self._lock:
            self._best_so_far = max(self._best_so_far or speedup, speedup)

    def _profile(self, source: str) -> Profile | None:
        with self._turn() as judge:
            return judge.profile(self._task, source)

    def _compile(self, source: str) -> CompileFinding:
        with self._turn() as judge:
            return judge.compile(self._task, source)

    @contextmanager
    def _turn(self) -> Iterator[Judge]:
        """The judge with the fewest questions, the first of them."""
        with self._lock:
            place = self._busy.index(min(self._busy))
            self._busy[place] += 1
        try:
            yield self._judges[place]
        finally:
            with self._lock:
                self._busy[place] -= 1

    def _keep(self, known: dict[str, Future[T]], name: str, value: T) -> None:
        future: Future[T] = Future()
        future.set_result(value)
        with self._lock:
            known[name] = future

    def _once(self, known: dict[str, Future[T]], source: str, ask: Callable[[str], T]) -> tuple[T, bool]:
        mine: Future[T] = Future()
        with self._lock:
            found = known.setdefault(source_identity(source), mine)
        if found is not mine:
            return found.result(), False
        try:
            mine.set_result(ask(source))
        except BaseException as error:
            mine.set_exception(error)
            raise
        return mine.result(), True


def recorded_findings(records: TaskRecords) -> dict[str, CompileFinding]:
    """What the judge's compiler said in a recorded task, by identity of the source.

    Raises:
        RecordError: the record is damaged.
    """
    try:
        return {name: _FINDING.validate_python(found) for name, found in records.findings().items()}
    except ValueError as error:
        raise RecordError(f"{records.folder}: the compiler's findings are damaged: {error}") from error

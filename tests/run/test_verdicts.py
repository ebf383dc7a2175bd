from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.core.judging.flags import SUSPECT, Flag
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.run.verdicts import Verdicts
from tests.run.parts import TASK, StubJudge
from tests.verdicts import make_verdict

FLAG = Flag("no_own_kernel", SUSPECT, "none of its kernels ran")


def test_equal_programs_are_asked_about_once() -> None:
    judge = StubJudge()
    verdicts = Verdicts(JudgeAccess([judge]), TASK)
    first, asked = verdicts.on("x = 1  # one\n")
    assert asked
    assert verdicts.on("x = 1\n") == (first, False)
    assert len(judge.judged) == 1
    assert verdicts.known("x  =  1") == first
    assert verdicts.known("x = 2") is None


def test_recorded_verdicts_are_not_requested() -> None:
    judge = StubJudge()
    verdicts = Verdicts(JudgeAccess([judge]), TASK)
    wrong = Verdict(status=Status.WRONG_VALUE)
    verdicts.learn("x = 1", wrong)
    verdicts.learn_profile("x = 1", None)
    assert verdicts.on("x = 1") == (wrong, False)
    assert verdicts.profile("x = 1") == (None, False)
    assert (judge.judged, judge.profiled) == ([], [])


def timed(speedup: float, **stats: Any) -> Verdict:
    return make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats={"fast_p": speedup} | stats)


def test_requests_carry_best_of_recorded_and_judged() -> None:
    class Rising(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            super().evaluate(task, source, best_so_far)
            return timed(float(len(self.judged)))

    judge = Rising()
    verdicts = Verdicts(JudgeAccess([judge]), TASK)
    verdicts.learn("x = 1", timed(1.5))
    verdicts.learn("x = 2", timed(0.5))
    for number in range(3, 6):
        verdicts.on(f"x = {number}")
    assert judge.best_so_far == [1.5, 1.5, 2.0]


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(status=Status.WRONG_VALUE),
        Verdict(status=Status.PASSED),
        timed(1.0, timing="interpreter"),
        timed(math.inf),
        timed(math.nan),
        timed(0.0),
        timed(100.0).model_copy(update={"flags": (FLAG,)}),
    ],
)
def test_verdict_without_reliable_speedup_is_no_best(verdict: Verdict) -> None:
    judge = StubJudge()
    verdicts = Verdicts(JudgeAccess([judge]), TASK)
    verdicts.learn("x = 1", verdict)
    verdicts.on("x = 2")
    assert judge.best_so_far == [None]


def test_waiting_requests_share_a_failure_later_ones_retry() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            begun.set()
            assert go_on.wait(20)
            raise JudgeUnavailableError("gone")

    verdicts = Verdicts(JudgeAccess([Broken()]), TASK)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(verdicts.on, "x = 1")
        assert begun.wait(20)
        second = pool.submit(verdicts.on, "x = 1")
        assert verdicts.known("x = 1") is None
        go_on.set()
        for asked in (first, second):
            with pytest.raises(JudgeUnavailableError, match="gone"):
                asked.result(20)
    assert verdicts.known("x = 1") is None


def test_free_judge_is_asked_before_busy_one() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Busy(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            begun.set()
            assert go_on.wait(20)
            return super().evaluate(task, source, best_so_far)

    busy, free = Busy(), StubJudge()
    verdicts = Verdicts(JudgeAccess([busy, free]), TASK)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(verdicts.on, "x = 0")
        assert begun.wait(20)
        for number in range(1, 4):
            verdicts.on(f"x = {number}")
        go_on.set()
        asked.result(20)
    assert (busy.judged, len(free.judged)) == (["x = 0"], 3)

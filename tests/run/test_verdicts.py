from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.run.verdicts import Verdicts
from tests.run.parts import TASK, StubJudge


def test_equal_programs_are_asked_about_once() -> None:
    judge = StubJudge()
    verdicts = Verdicts([judge], TASK)
    first, asked = verdicts.on("x = 1  # one\n")
    assert asked
    assert verdicts.on("x = 1\n") == (first, False)
    assert len(judge.judged) == 1
    assert verdicts.known("x  =  1") == first
    assert verdicts.known("x = 2") is None


def test_what_was_learnt_is_not_asked_for() -> None:
    judge = StubJudge()
    verdicts = Verdicts([judge], TASK)
    wrong = Verdict(status=Status.WRONG_VALUE)
    verdicts.learn("x = 1", wrong)
    verdicts.learn_profile("x = 1", None)
    assert verdicts.on("x = 1") == (wrong, False)
    assert verdicts.profile("x = 1") == (None, False)
    assert (judge.judged, judge.profiled) == ([], [])


def test_a_second_timing_is_asked_for_all_the_same() -> None:
    judge = StubJudge()
    verdicts = Verdicts([judge], TASK)
    verdicts.on("x = 1")
    verdicts.again("x = 1")
    assert (judge.judged, judge.judged_again) == (["x = 1"], ["x = 1"])


def test_who_waits_for_a_verdict_that_fails_is_told_so_and_a_later_one_asks_again() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            begun.set()
            assert go_on.wait(20)
            raise JudgeUnavailableError("gone")

    verdicts = Verdicts([Broken()], TASK)
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


def test_a_judge_that_is_free_again_is_asked_before_one_that_is_busy() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Busy(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            begun.set()
            assert go_on.wait(20)
            return super().evaluate(task, source, force=force)

    busy, free = Busy(), StubJudge()
    verdicts = Verdicts([busy, free], TASK)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(verdicts.on, "x = 0")
        assert begun.wait(20)
        for number in range(1, 4):
            verdicts.again(f"x = {number}")
        go_on.set()
        asked.result(20)
    assert (busy.judged, len(free.judged_again)) == (["x = 0"], 3)

"""The lints against Triton itself: what they stop, the judge's compiler refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("triton")

from adaexplore.core.task import Task
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.http import HttpJudge
from tests.online_judge.live import LiveJudge

from .cases import CASES, MORE, REFERENCE, WORKING, Case

TASK = Task(0, "x", "x", REFERENCE, "fp32", Path("x.py"))


@pytest.fixture
def compiler(judge: LiveJudge) -> Iterator[HttpJudge]:
    with open_client() as client:
        yield HttpJudge(Connection(judge.url, client=client), EvaluationRequest(tf32="off"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_compiler_refuses_linted_case_and_accepts_its_fix(compiler: HttpJudge, case: Case) -> None:
    assert not compiler.compile(TASK, case.bad).ok
    good = compiler.compile(TASK, case.good)
    assert good.ok, good.message


@pytest.mark.parametrize(("rule", "source"), MORE)
def test_compiler_refuses_other_forms_of_each_mistake(compiler: HttpJudge, rule: str, source: str) -> None:
    assert not compiler.compile(TASK, source).ok, rule


@pytest.mark.parametrize("source", WORKING.values(), ids=WORKING)
def test_compiler_accepts_unusual_working_candidates(compiler: HttpJudge, source: str) -> None:
    found = compiler.compile(TASK, source)
    assert found.ok, found.message

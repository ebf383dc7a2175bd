"""The lints against Triton itself: what they stop, the judge's compiler refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.core.task import Task
from adaexplore.judge_client.connection import open_client
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.http import Evaluation, HttpJudge

from .cases import CASES, MORE, REFERENCE, Case

TASK = Task(0, "x", "x", REFERENCE, "fp32", Path("x.py"))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpJudge]:
    pytest.importorskip("triton")
    log_path = tmp_path_factory.mktemp("judge") / "judge.log"
    started = embedded_judge(
        device="cpu", compile_target="sm_90", gpu_ids=(), workers=1, seed=0, log_path=log_path, token="t"
    )
    with started as url, open_client() as client:
        yield HttpJudge(url, Evaluation(0.05, "off"), token="t", client=client)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_a_lint_stops_does_not_compile_and_its_neighbour_does(judge: HttpJudge, case: Case) -> None:
    assert not judge.compile(TASK, case.bad).ok
    good = judge.compile(TASK, case.good)
    assert good.ok, good.message


@pytest.mark.parametrize(("rule", "source"), MORE)
def test_other_forms_of_a_mistake_do_not_compile_either(judge: HttpJudge, rule: str, source: str) -> None:
    assert not judge.compile(TASK, source).ok, rule

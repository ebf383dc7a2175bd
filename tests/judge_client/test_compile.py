"""Asking a judge to compile a candidate's launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.wire import CompileReport, EvaluationRequest
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.http import HttpJudge
from tests.judge_server import Answer, JudgeServer

TASK = Task(2, "7", "7_x", "class Model: ...\n", "fp16", Path("7_x.py"))
REPORT = {"ok": False, "status": "compile", "kernel": "k", "line": 3, "message": "no", "error_name": "a.B"}


def found(end: dict[str, Any], code: int = 202, bodies: list[dict[str, Any]] | None = None) -> CompileReport:
    def jobs(method: str, _path: str, body: dict[str, Any], _key: str | None) -> Answer:
        if method == "POST":
            if bodies is not None:
                bodies.append(body)
            return code, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "compile", **end}, {}

    with JudgeServer(jobs=jobs) as server:
        judge = HttpJudge(Connection(server.url, sleep=lambda _: False), EvaluationRequest(tf32="off"))
        return judge.compile(TASK, "class ModelNew: ...")


def test_report_of_the_compiler_is_returned() -> None:
    bodies: list[dict[str, Any]] = []
    finding = found({"state": "done", "report": REPORT}, bodies=bodies)
    assert finding == CompileReport.model_validate(REPORT)
    (body,) = bodies
    assert (body["kind"], body["request"]["dtype_str"], body["request"]["tf32"]) == ("compile", "fp16", "off")
    assert body["request"]["custom_model_src"] == "class ModelNew: ..."


def test_passed_or_unchecked_candidate_is_accepted() -> None:
    for status in ("passed", "not_checked"):
        assert found({"state": "done", "report": {"ok": status == "passed", "status": status}}).ok


def test_a_judge_without_such_jobs_checks_nothing() -> None:
    assert found({}, code=404).status == Status.NOT_CHECKED
    assert DummyJudge(0).compile(TASK, "x").status == Status.NOT_CHECKED


def test_a_failing_reference_is_the_problems_fault() -> None:
    with pytest.raises(ProblemError, match=r"7_x\.py: Reference failed: boom"):
        found({"state": "failed", "error": "Reference failed: boom"})


@pytest.mark.parametrize(
    "end", [{"state": "failed", "error": "died"}, {"state": "done", "report": {"ok": True, "status": "odd"}}]
)
def test_a_failing_judge_says_nothing_about_a_candidate(end: dict[str, Any]) -> None:
    with pytest.raises(JudgeError):
        found(end)

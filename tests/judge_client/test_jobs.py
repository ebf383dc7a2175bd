"""A judge that takes jobs: connections and judges may break, the verdict arrives once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import Interrupted, JudgeError, JudgeRequestError, ProblemError
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.http import HttpJudge
from tests.judge_server import PASSED, Answer, JudgeServer, failed

TASK = Task(2, "7", "7_x", "class Model: ...\n", "fp32", Path("7_x.py"))
VERDICT = {key: PASSED[key] for key in ("compiled", "correctness", "metadata", "runtime", "runtime_stats")}
NOT_FOUND: Answer = (404, {"detail": "there is no job of this id (any more)"}, {})


def ticket(job_id: str = "1") -> Answer:
    return 202, {"id": job_id, "status": "queued", "position": 0}, {}


def stands(state: str, **more: Any) -> Answer:
    return 200, {"id": "1", "kind": "candidate", "state": state, **more}, {}


def done(metrics: dict[str, Any] = VERDICT, status: str = "passed") -> Answer:
    return stands("done", verdict={"status": status, **metrics})


class Jobs:
    """Answers POST and GET in turn, repeats the last answer, and keeps the requests."""

    def __init__(self, posts: list[Answer], looks: list[Answer]) -> None:
        self.came: list[tuple[str, str, str | None]] = []
        self.bodies: list[dict[str, Any]] = []
        self._answers = {"POST": posts, "GET": looks, "DELETE": [stands("cancelled")]}

    def __call__(self, method: str, path: str, body: dict[str, Any], key: str | None) -> Answer:
        self.came.append((method, path.partition("?")[0], key))
        if method == "POST":
            self.bodies.append(body)
        left = self._answers[method]
        return left.pop(0) if len(left) > 1 else left[0]

    def times(self, method: str) -> int:
        return sum(came[0] == method for came in self.came)


def judge(url: str, sleep: Callable[[float], object] = lambda _: False, **more: Any) -> HttpJudge:
    return HttpJudge(
        Connection(url, sleep=sleep, **more), EvaluationRequest(tf32="off", tier="strict", baseline="compile")
    )


def test_candidate_job_is_polled_until_done() -> None:
    jobs = Jobs([ticket("a7")], [stands("queued", position=3), stands("running"), done()])
    with JudgeServer(jobs=jobs) as server:
        verdict = judge(server.url).evaluate(TASK, "class ModelNew: ...")
        assert server.requests == []  # nothing by v1
    assert (verdict.status, verdict.speedup, verdict.runtime_ms) == (Status.PASSED, 1.5, 1.0)
    assert [came[:2] for came in jobs.came] == [("POST", "/v2/jobs")] + [("GET", "/v2/jobs/a7")] * 3
    (body,) = jobs.bodies
    assert (body["kind"], body["force"]) == ("candidate", False)
    request = body["request"]
    assert (request["tier"], request["baseline"], request["tf32"]) == ("strict", "compile", "off")
    assert (request["custom_model_src"], request["problem_id"]) == ("class ModelNew: ...", "7")
    assert "test_source" not in request


def test_a_bad_kernel_is_a_verdict() -> None:
    wrong = {key: failed("compile", feedback="line 3")[key] for key in VERDICT}
    with JudgeServer(jobs=Jobs([ticket()], [done(wrong, "compile")])) as server:
        verdict = judge(server.url).evaluate(TASK, "x")
    assert (verdict.status, verdict.feedback) == (Status.COMPILE, "line 3")


def test_a_measurement_is_forced_where_asked() -> None:
    jobs = Jobs([ticket()], [done()])
    with JudgeServer(jobs=jobs) as server:
        HttpJudge(Connection(server.url), EvaluationRequest(tf32="off"), force=True).evaluate(TASK, "x")
    assert jobs.bodies[0]["force"] is True


@pytest.mark.parametrize(("best_so_far", "sent"), [(1.75, {"best_so_far": 1.75}), (None, {})])
def test_best_so_far_is_sent_when_known(best_so_far: float | None, sent: dict[str, float]) -> None:
    jobs = Jobs([ticket()], [done()])
    with JudgeServer(jobs=jobs) as server:
        judge(server.url).evaluate(TASK, "x", best_so_far)
    with JudgeServer() as release:
        judge(release.url).evaluate(TASK, "x", best_so_far)
        requests = [jobs.bodies[0]["request"], release.requests[0][1]]
    found = [{key: request[key] for key in request if key == "best_so_far"} for request in requests]
    assert found == [sent, sent]


def test_overload_is_waited_out_with_the_same_key() -> None:
    slept: list[float] = []
    busy = [(429, "full", {"Retry-After": "7"}), (503, "journal", {"Retry-After": "2"})]
    jobs = Jobs([*busy, ticket()], [done()])
    with JudgeServer(jobs=jobs) as server:
        assert judge(server.url, slept.append).evaluate(TASK, "x").correct
    assert slept == [7.0, 2.0]
    keys = [key for method, _, key in jobs.came if method == "POST"]
    assert len(keys) == 3
    assert re.fullmatch("[0-9a-f]{32}", keys[0] or "")
    assert len(set(keys)) == 1


def test_each_evaluation_is_a_job_of_its_own() -> None:
    jobs = Jobs([ticket()], [done()])
    with JudgeServer(jobs=jobs) as server:
        client = judge(server.url)
        client.evaluate(TASK, "x")
        client.evaluate(TASK, "x")
    assert len({key for method, _, key in jobs.came if method == "POST"}) == 2


def test_job_survives_judge_restart_with_journal() -> None:
    jobs = Jobs([ticket("a")], [stands("running"), done()])
    with JudgeServer(jobs=jobs) as first:
        port = int(first.url.rpartition(":")[2])
        slept: list[float] = []
        entered: list[JudgeServer] = []

        def sleep(seconds: float) -> None:
            """While the client waits, the judge goes and, later, comes back on its port."""
            slept.append(seconds)
            if seconds == 0 and not entered:
                first.stop()
            elif seconds > 0 and not entered:
                entered.append(JudgeServer(jobs=jobs, port=port).__enter__())

        try:
            assert judge(first.url, sleep).evaluate(TASK, "x").correct
        finally:
            for server in entered:
                server.stop()
    assert [method for method, *_ in jobs.came] == ["POST", "GET", "GET"]
    assert [seconds for seconds in slept if seconds > 0]


def test_lost_job_is_resubmitted_under_its_key() -> None:
    jobs = Jobs([ticket("a"), ticket("b")], [NOT_FOUND, done()])
    with JudgeServer(jobs=jobs) as server:
        assert judge(server.url).evaluate(TASK, "x").correct
    posts = [came for came in jobs.came if came[0] == "POST"]
    assert len(posts) == 2
    assert posts[0][2] == posts[1][2]
    assert jobs.came[-1][1] == "/v2/jobs/b"


def test_judge_that_always_forgets_falls_back_to_v1(caplog: pytest.LogCaptureFixture) -> None:
    with JudgeServer(jobs=Jobs([ticket()], [NOT_FOUND])) as server:
        assert judge(server.url).evaluate(TASK, "x").correct
        assert [path for path, _ in server.requests] == ["/evaluate"]
    assert "WORKERS" in caplog.text


def test_release_judge_is_asked_for_jobs_once() -> None:
    jobs = Jobs([NOT_FOUND], [NOT_FOUND])
    with JudgeServer(jobs=jobs) as server:
        client = judge(server.url)
        assert client.evaluate(TASK, "x").correct
        assert client.evaluate(TASK, "y").correct
        assert [path for path, _ in server.requests] == ["/evaluate"] * 2
        assert server.requests[0][1]["tier"] == "strict"
    assert jobs.times("POST") == 1


def test_a_failing_reference_is_a_problem_error() -> None:
    with (
        JudgeServer(jobs=Jobs([ticket()], [stands("failed", error="Reference failed: boom")])) as server,
        pytest.raises(ProblemError, match="boom"),
    ):
        judge(server.url).evaluate(TASK, "x")


@pytest.mark.parametrize("ended", [stands("failed", error="zygote died"), stands("cancelled")])
def test_failing_judge_is_retried_then_stops_run(ended: Answer) -> None:
    jobs = Jobs([ticket()], [ended])
    with JudgeServer(jobs=jobs) as server, pytest.raises(JudgeError, match=r"zygote died|cancelled"):
        judge(server.url).evaluate(TASK, "x")
    assert len({key for method, _, key in jobs.came if method == "POST"}) == 3


def test_a_run_that_stops_cancels_its_job() -> None:
    jobs = Jobs([ticket("a")], [stands("running")])
    stop = threading.Event()
    stop.set()
    with JudgeServer(jobs=jobs) as server, pytest.raises(Interrupted):
        judge(server.url, stop.wait).evaluate(TASK, "x")
    assert jobs.came[-1][:2] == ("DELETE", "/v2/jobs/a")


@pytest.mark.parametrize("code", [400, 401, 403, 409, 422, 501])
def test_refused_jobs_are_not_retried(code: int) -> None:
    jobs = Jobs([(code, "no", {})], [done()])
    with JudgeServer(jobs=jobs) as server, pytest.raises(JudgeRequestError) as caught:
        judge(server.url).evaluate(TASK, "x")
    assert len(jobs.came) == 1
    assert "\n" not in str(caught.value)


def test_token_refused_in_mid_job_is_reported() -> None:
    jobs = Jobs([ticket()], [(401, "no", {})])
    with (
        JudgeServer(jobs=jobs) as server,
        pytest.raises(JudgeRequestError, match="ADAEXPLORE_JUDGE_TOKEN"),
    ):
        judge(server.url, token="secret-7").evaluate(TASK, "x")


@pytest.mark.parametrize("answer", [(200, "<html>", {}), (202, {"hello": 1}, {})])
def test_another_service_at_the_address_is_named(answer: Answer) -> None:
    with (
        JudgeServer(jobs=Jobs([answer], [done()])) as server,
        pytest.raises(JudgeError, match="does not follow"),
    ):
        judge(server.url).evaluate(TASK, "x")


def test_waiting_jobs_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    waits = stands("queued", reason="the Ray cluster is not reachable")
    with JudgeServer(jobs=Jobs([ticket()], [waits, waits, done()])) as server:
        assert judge(server.url).evaluate(TASK, "x").correct
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "the Ray cluster is not reachable"
    ]

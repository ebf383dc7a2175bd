from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import (
    Interrupted,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    ProblemError,
)
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.http import HttpJudge
from tests import judge_server
from tests.judge_server import PASSED, Answer, JudgeServer, failed

TASK = Task(2, "7", "7_x", "class Model: ...\n", "fp32", Path("7_x.py"))


def judge(url: str, slept: list[float] | None = None, patience_s: float = 600.0) -> HttpJudge:
    now = [0.0]

    def sleep(seconds: float) -> bool:
        now[0] += seconds
        if slept is not None:
            slept.append(seconds)
        return False

    return HttpJudge(
        Connection(url, sleep=sleep, clock=lambda: now[0], patience_s=patience_s), EvaluationRequest()
    )


def sequence(*answers: Answer) -> Callable[[str, dict[str, Any]], Answer]:
    left = list(answers)
    return lambda _path, _body: left.pop(0) if len(left) > 1 else left[0]


def test_verdict_and_request_carry_the_v1_fields() -> None:
    with JudgeServer() as server:
        verdict = judge(server.url).evaluate(TASK, "class ModelNew: ...")
        path, body = server.requests[0]
    assert (verdict.status, verdict.speedup, verdict.runtime_ms) == (Status.PASSED, 1.5, 1.0)
    assert path == "/evaluate"
    assert body["original_model_src"] == TASK.reference
    assert body["custom_model_src"] == "class ModelNew: ..."
    assert (body["num_correct_trials"], body["num_perf_trials"], body["measure_performance"]) == (
        5,
        100,
        True,
    )
    assert (body["backend"], body["dtype_str"], body["level"], body["problem_id"]) == (
        "triton",
        "fp32",
        "2",
        "7",
    )
    assert "test_source" not in body
    assert "direction" not in body


def test_direction_of_a_task_is_asked_for() -> None:
    with JudgeServer() as server:
        judge(server.url).check_problem(replace(TASK, direction="both"))
        judge(server.url).evaluate(replace(TASK, direction="both"), "class ModelNew: ...")
        judge(server.url).check_problem(TASK)
        assert [body.get("direction") for _, body in server.requests] == ["both", "both", None]


def test_a_bad_kernel_is_a_verdict() -> None:
    answer = sequence((200, failed("compile", feedback="line 3"), {}))
    with JudgeServer(answer) as server:
        verdict = judge(server.url).evaluate(TASK, "x")
    assert (verdict.status, verdict.feedback) == (Status.COMPILE, "line 3")


def test_candidate_too_large_to_send_is_a_verdict() -> None:
    refused: Answer = (413, '{"detail":"The body is larger than 4 bytes (MAX_BODY_BYTES)"}', {})
    with JudgeServer(jobs=lambda *_: refused) as server:
        verdict = judge(server.url).evaluate(TASK, "x" * 10_000_000)
        finding = judge(server.url).compile(TASK, "x" * 10_000_000)
    assert (verdict.status, finding.status) == (Status.LOAD, Status.LOAD)
    for text in (verdict.feedback, finding.message):
        assert "10000000 bytes" in text
        assert "larger than 4 bytes (MAX_BODY_BYTES)" in text


def test_client_waits_as_long_as_full_queue_asks() -> None:
    slept: list[float] = []
    with JudgeServer(sequence((503, "full", {"Retry-After": "7"}), (200, PASSED, {}))) as server:
        assert judge(server.url, slept).evaluate(TASK, "x").correct
    assert slept == [7.0]


def test_waits_double_without_a_valid_retry_after() -> None:
    slept: list[float] = []
    busy = [(503, "full", headers) for headers in ({}, {"Retry-After": "nan"}, {"Retry-After": "soon"}, {})]
    with JudgeServer(sequence(*busy, (200, PASSED, {}))) as server:
        assert judge(server.url, slept).evaluate(TASK, "x").correct
    assert all(most / 2 <= wait <= most for wait, most in zip(slept, (1, 2, 4, 8), strict=True))


@pytest.mark.parametrize(
    ("answer", "said"),
    [((503, "full", {}), "503"), ((200, "plain", {"Content-Encoding": "gzip"}), "DecodingError")],
)
def test_lasting_trouble_is_a_judge_error(answer: Answer, said: str) -> None:
    with JudgeServer(sequence(answer)) as server, pytest.raises(JudgeUnavailableError, match=said):
        judge(server.url, patience_s=5).evaluate(TASK, "x")


def test_infrastructure_failure_is_retried_then_stops_the_run() -> None:
    broken = {**PASSED, "success": False, "correctness": False, "metadata": {}, "error": "zygote died"}
    with JudgeServer(sequence((200, broken, {}))) as server:
        with pytest.raises(JudgeError, match="zygote died") as caught:
            judge(server.url).evaluate(TASK, "x")
        assert len(server.requests) == 3
    assert caught.value.exit_code == 4


def test_failing_reference_is_a_problem_error() -> None:
    broken = {**PASSED, "success": False, "metadata": {}, "error": "Reference failed: boom"}
    with JudgeServer(sequence((200, broken, {}))) as server, pytest.raises(ProblemError, match="boom"):
        judge(server.url).evaluate(TASK, "x")


def test_timeout_from_judge_without_statuses_is_the_candidates() -> None:
    late = {**PASSED, "success": False, "metadata": {}, "error": "Kernel execution timeout: exceeded 600s"}
    with JudgeServer(sequence((200, late, {}))) as server:
        assert judge(server.url).evaluate(TASK, "x").status is Status.TIMEOUT


@pytest.mark.parametrize("code", [400, 422, 501])
def test_refused_requests_are_not_retried(code: int) -> None:
    with JudgeServer(sequence((code, "no", {}))) as server:
        with pytest.raises(JudgeRequestError):
            judge(server.url).evaluate(TASK, "x")
        assert len(server.requests) == 1


def test_nobody_listening_says_what_to_do() -> None:
    with JudgeServer() as server:
        url = server.url
    with pytest.raises(JudgeUnavailableError, match="adaexplore judge"):
        judge(url).identity()
    with pytest.raises(JudgeUnavailableError, match="no judge answers"):
        judge(url, patience_s=3).evaluate(TASK, "x")


def test_dead_embedded_judge_is_not_waited_for(tmp_path: Path) -> None:
    slept: list[float] = []
    with JudgeServer() as server:
        url = server.url
    own = HttpJudge(
        Connection(url, own_log=tmp_path / "judge.log", sleep=slept.append), EvaluationRequest(tf32="off")
    )
    with pytest.raises(JudgeUnavailableError, match=r"judge\.log"):
        own.evaluate(TASK, "x")
    assert slept == []


@pytest.mark.parametrize("page", ["<html>", "[" * 100_000])
def test_another_service_at_the_address_is_named(page: str) -> None:
    with (
        JudgeServer(sequence((200, page, {}))) as server,
        pytest.raises(JudgeError, match="does not follow"),
    ):
        judge(server.url).evaluate(TASK, "x")


def test_malformed_problem_report_is_one_error() -> None:
    server = JudgeServer(sequence((200, PASSED, {})))
    with server, pytest.raises(JudgeError, match="does not follow the judge's protocol"):
        judge(server.url).check_problem(TASK)


def test_stop_while_waiting_interrupts() -> None:
    with JudgeServer(sequence((503, "full", {}))) as server:
        stopped = HttpJudge(Connection(server.url, sleep=lambda _: True), EvaluationRequest(tf32="off"))
        with pytest.raises(Interrupted):
            stopped.evaluate(TASK, "x")


def test_problem_check_passes_refuses_and_is_optional() -> None:
    with JudgeServer() as server:
        judge(server.url).check_problem(TASK)
    refused = {"ok": False, "reason": "too large", "device": "cpu", "hardware": "CPU"}
    with JudgeServer(sequence((200, refused, {}))) as server, pytest.raises(ProblemError, match="too large"):
        judge(server.url).check_problem(TASK)
    with JudgeServer(sequence((404, "not found", {}))) as server:
        judge(server.url).check_problem(TASK)


def test_problem_examination_requests_and_requires_traits() -> None:
    traits = {"flags": [], "elements": 5, "call_ms": 0.1, "operators": ["exp"], "graph": "g"}
    report = {"ok": True, "device": "cpu", "hardware": "CPU", "traits": traits}
    with JudgeServer(sequence((200, report, {}))) as server:
        found = judge(server.url).examine_problem(TASK.reference, "bf16")
        assert server.requests[0][1]["thorough"] is True
        assert server.requests[0][1]["dtype_str"] == "bf16"
        judge(server.url).check_problem(TASK)
        assert "thorough" not in server.requests[1][1]
    assert found.traits is not None
    assert found.traits.graph == "g"
    for answer in ((404, "not found", {}), (200, report | {"traits": None}, {})):
        with JudgeServer(sequence(answer)) as server, pytest.raises(JudgeError, match="cannot examine"):
            judge(server.url).examine_problem(TASK.reference, "fp32")


@pytest.mark.parametrize("told", [{"judge_device": "cuda"}, {}])  # this project's judge, the release's
def test_judge_without_required_gpu_fails_at_once(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    health = {key: value for key, value in judge_server.HEALTH.items() if key != "judge_device"}
    monkeypatch.setattr(judge_server, "HEALTH", {**health, **told})
    with JudgeServer() as server, pytest.raises(JudgeUnavailableError, match="judge_device: cpu"):
        judge(server.url).identity()


def test_judge_without_devices_passes_on_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"judge_device": "cuda", "reason": "the Ray cluster is not reachable"}
    monkeypatch.setattr(judge_server, "HEALTH", {**judge_server.HEALTH, **told})
    said = "has no device now: the Ray cluster is not reachable"
    with JudgeServer() as server, pytest.raises(JudgeUnavailableError, match=said):
        judge(server.url).identity()


def test_identity_reads_health() -> None:
    with JudgeServer() as server:
        identity = judge(server.url).identity()
    assert (identity.device, identity.hardware, identity.versions) == (
        "cpu",
        "CPU (test)",
        {"triton": "0"},
    )


def test_identity_names_the_active_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"network": True, "memory": "cgroup", "memory_of": None, "processes": False, "uid": None}
    monkeypatch.setattr(judge_server, "HEALTH", {**judge_server.HEALTH, "sandbox": told})
    with JudgeServer() as server:
        sandbox = judge(server.url).identity().sandbox
    assert sandbox is not None
    assert (sandbox.in_force, sandbox.missing) == (("network", "memory cgroup"), ("processes", "uid"))


def test_token_is_in_every_request_but_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with JudgeServer(sequence((503, "full", {}), (200, PASSED, {}))) as server:
        client = HttpJudge(
            Connection(server.url, token="secret-7", sleep=lambda _: False), EvaluationRequest()
        )
        client.identity()
        client.evaluate(TASK, "x")
    assert server.authorizations == ["Bearer secret-7"] * 3
    assert "secret-7" not in caplog.text
    with JudgeServer() as server:
        judge(server.url).identity()
    assert server.authorizations == [None]


@pytest.mark.parametrize("code", [401, 403])
def test_refused_access_names_variable_but_not_token(code: int) -> None:
    with JudgeServer(sequence((code, "no", {}))) as server:
        client = HttpJudge(Connection(server.url, token="secret-7"), EvaluationRequest())
        with pytest.raises(JudgeRequestError, match="ADAEXPLORE_JUDGE_TOKEN") as caught:
            client.evaluate(TASK, "x")
        assert len(server.requests) == 1
    assert "secret-7" not in str(caught.value)


def test_reference_failing_as_candidate_is_a_problem_error() -> None:
    def answer(path: str, body: dict[str, Any]) -> Answer:
        if path == "/v2/problem":
            return 200, {"ok": True, "reason": "", "device": "cpu", "hardware": "test"}, {}
        assert body["custom_model_src"] == TASK.reference + "\n\nModelNew = Model\n"
        return 200, failed("launch", feedback="expected float\nbut got bfloat16"), {}

    settings = EvaluationRequest(tf32="off")
    with JudgeServer(answer) as server:
        judge(server.url).check_problem(TASK)
        with pytest.raises(ProblemError, match=r"own candidate: expected float but got bfloat16"):
            HttpJudge(Connection(server.url), settings, try_reference=True).check_problem(TASK)

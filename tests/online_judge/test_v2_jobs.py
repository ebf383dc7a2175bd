"""Jobs: lifecycle, long poll, idempotency, cancelling, cache, coalescing, refusals."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from .live import LiveJudge, alive, parent, wait_until
from .sources import BAD, HONEST, NOTED, PASSING, REFERENCE, with_forward

FOREVER = with_forward(NOTED + "time.sleep(600)")
SLOW = with_forward("time.sleep(0.3)\n" + HONEST)


def submit(judge: LiveJudge, candidate: str = PASSING, key: str = "", **fields: Any) -> httpx.Response:
    request = {"original_model_src": REFERENCE, "custom_model_src": candidate, "backend": "triton"}
    body = {"kind": "candidate", "request": request | fields.pop("request", {})} | fields
    return judge.client.post("/v2/jobs", json=body, headers={"Idempotency-Key": key} if key else {})


def look(judge: LiveJudge, job_id: str, wait: float = 30) -> dict[str, Any]:
    response = judge.client.get(f"/v2/jobs/{job_id}", params={"wait": wait})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def judged(judge: LiveJudge, candidate: str, **fields: Any) -> dict[str, Any]:
    response = submit(judge, candidate, **fields)
    assert response.status_code == 202, response.text
    return look(judge, response.json()["id"])


def cancel(judge: LiveJudge, job_id: str) -> dict[str, Any]:
    response = judge.client.delete(f"/v2/jobs/{job_id}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def metric(judge: LiveJudge, line: str) -> float:
    for each in judge.client.get("/metrics").text.splitlines():
        if each.startswith(f"adaexplore_judge_{line} "):
            return float(each.rpartition(" ")[2])
    return 0.0


def test_candidate_goes_from_ticket_to_verdict(judge: LiveJudge) -> None:
    source = PASSING + "# lifecycle\n"
    ticket = submit(judge, source, force=True)
    assert ticket.status_code == 202
    assert set(ticket.json()) == {"id", "status", "position"}
    assert ticket.json()["status"] in ("queued", "running")
    answer = look(judge, ticket.json()["id"])
    assert (answer["state"], answer["error"], answer["report"]) == ("done", None, None)
    verdict = answer["verdict"]
    assert verdict["status"] == verdict["metadata"]["status"] == "passed"
    assert set(verdict) == {"status", "compiled", "correctness", "metadata", "runtime", "runtime_stats"}
    v1 = judge.evaluate(source)
    assert {key: v1[key] for key in verdict if key != "status"} == {
        key: value for key, value in verdict.items() if key != "status"
    }


@pytest.mark.parametrize("name", ["syntax", "compile", "wrong_value"])
def test_bad_candidate_is_done_and_not_failed(judge: LiveJudge, name: str) -> None:
    answer = judged(judge, BAD[name])
    assert (answer["state"], answer["verdict"]["status"]) == ("done", name)
    assert answer["verdict"]["metadata"]["feedback"]


def test_failing_reference_fails_the_job(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING, request={"original_model_src": "raise ValueError('by hand')"})
    assert (answer["state"], answer["verdict"]) == ("failed", None)
    assert answer["error"].startswith("Reference failed: ")


def test_problem_job_answers_like_the_synchronous_question(judge: LiveJudge) -> None:
    for reference, ok in ((REFERENCE, True), ("x = 1", False)):
        answer = judged(judge, "", kind="problem", request={"original_model_src": reference})
        asked = judge.post("/v2/problem", {"original_model_src": reference}).json()
        assert (answer["state"], answer["report"]["ok"]) == ("done", ok)
        assert answer["report"] == asked


def test_long_poll_returns_when_the_job_finishes(judge: LiveJudge) -> None:
    job = submit(judge, SLOW, force=True).json()["id"]
    assert look(judge, job, wait=0)["state"] in ("queued", "running")
    begin = time.monotonic()
    assert look(judge, job, wait=0.1)["state"] in ("queued", "running")
    assert 0.1 <= time.monotonic() - begin < 0.6
    assert look(judge, job, wait=30)["state"] == "done"
    assert time.monotonic() - begin < 15


def test_idempotency_key_returns_same_job_or_409(judge: LiveJudge) -> None:
    first = submit(judge, PASSING, key="once").json()["id"]
    assert submit(judge, PASSING, key="once").json()["id"] == first
    assert submit(judge, PASSING, key="twice").json()["id"] != first
    assert submit(judge, PASSING, key="once", priority=1).status_code == 409
    look(judge, first)
    assert submit(judge, PASSING, key="once").json() == {"id": first, "status": "done", "position": 0}


def test_simultaneous_requests_of_one_key_make_one_job(judge: LiveJudge) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: submit(judge, SLOW, key="at once", force=True), range(8)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_unknown_job_is_404(judge: LiveJudge) -> None:
    unknown = judge.client.get("/v2/jobs/none")
    assert (unknown.status_code, "last 2000 finished jobs" in unknown.text) == (404, True)
    assert judge.client.delete("/v2/jobs/none").status_code == 404


def test_cancelling_kills_the_candidate_process_before_it_answers(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    job = submit(judge, FOREVER).json()["id"]
    (candidate,) = wait_until(lambda: judge.processes("noted"))
    supervisor = parent(candidate)
    poll: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: poll.append(look(judge, job)))
    waiting.start()
    assert cancel(judge, job)["state"] == "cancelled"
    assert judge.processes("noted") == []
    wait_until(lambda: not alive(supervisor))
    waiting.join(10)
    assert poll[0]["state"] == "cancelled"
    assert cancel(judge, job)["state"] == "cancelled"
    assert judged(judge, with_forward(HONEST))["state"] == "done"


def test_cancelled_job_that_waits_never_runs(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    blocker = submit(judge, FOREVER).json()["id"]
    wait_until(lambda: judge.processes("noted"))
    waiting = submit(judge, FOREVER + "# another\n").json()
    assert (waiting["status"], waiting["position"]) == ("queued", 0)
    assert cancel(judge, waiting["id"])["state"] == "cancelled"
    assert look(judge, blocker, wait=0)["state"] == "running"
    assert judge.client.get("/queue/status").json()["total_queued"] == 0
    cancel(judge, blocker)
    assert judge.processes("noted") == []


def test_finished_job_stays_done_when_it_is_cancelled(judge: LiveJudge) -> None:
    answer = judged(judge, PASSING)
    assert cancel(judge, answer["id"]) == answer


def test_higher_priority_goes_first(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    blocker = submit(judge, FOREVER).json()["id"]
    wait_until(lambda: judge.processes("noted"))
    low, high = (submit(judge, PASSING, force=True, priority=each).json() for each in (0, 5))
    assert look(judge, low["id"], wait=0)["position"] == 1
    assert high["position"] == 0
    cancel(judge, blocker)
    assert look(judge, high["id"])["queue_time"] < look(judge, low["id"])["queue_time"]


def test_known_verdict_is_given_again_unless_forced(judge: LiveJudge) -> None:
    source = with_forward("h = self.linear(x)\nreturn h.clamp(min=0)")
    first = judged(judge, source)
    before = metric(judge, 'cache_lookups_total{result="hit"}')
    again = judged(judge, source)
    forced = judged(judge, source, force=True)
    assert [each["cached"] for each in (first, again, forced)] == [False, True, False]
    assert first["verdict"] == again["verdict"] == forced["verdict"]
    assert metric(judge, 'cache_lookups_total{result="hit"}') == before + 1
    others: list[dict[str, Any]] = [
        {"tolerance": 0.01},
        {"tf32": "off"},
        {"dtype_str": "bf16"},
        {"num_correct_trials": 2},
        {"seed_num": 7},
        {"original_model_src": REFERENCE + "# other\n"},
    ]
    for policy in others:
        assert judged(judge, source, request=policy)["cached"] is False, policy


def test_verdict_is_no_answer_to_another_layout(judge: LiveJudge) -> None:
    """A program that reads its line numbers may hide that it does."""
    line = "int(('{0.__co' + 'de__.co_first' + 'lineno}').format(type(self).forward))"
    source = with_forward(f"h = self.linear(x)\nreturn h.clamp(min=0) if {line} < 999 else h")
    moved = "\n" * 999 + source
    found = [judged(judge, each) for each in (source, moved, "# a comment\n" + source)]
    assert [each["cached"] for each in found] == [False, False, False]
    assert [each["verdict"]["status"] for each in found] == ["passed", "wrong_value", "passed"]


def test_cached_failure_applies_only_to_identical_source(judge: LiveJudge) -> None:
    source = BAD["compile"].replace("relu_kernel", "own_kernel")
    first, again = judged(judge, source), judged(judge, source)
    assert (first["cached"], again["cached"]) == (False, True)
    moved = judged(judge, "\n\n" + source)
    assert moved["cached"] is False
    assert moved["verdict"]["metadata"]["feedback"] != first["verdict"]["metadata"]["feedback"]


@pytest.mark.parametrize("candidate", [BAD["crash-exit"], FOREVER], ids=["crash", "timeout"])
def test_outcomes_of_chance_are_not_kept(judge: LiveJudge, candidate: str) -> None:
    for _ in range(2):
        answer = judged(judge, candidate, request={"timeout": 1})
        assert answer["verdict"]["status"] in ("crash", "timeout")
        assert answer["cached"] is False


def test_v1_measures_again_by_default(judge: LiveJudge) -> None:
    judged(judge, PASSING)
    before = metric(judge, 'evaluations_total{kind="candidate",status="passed"}')
    judge.evaluate(PASSING)
    assert metric(judge, 'evaluations_total{kind="candidate",status="passed"}') == before + 1


def test_identical_jobs_on_their_way_share_one_evaluation(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    source = SLOW + "# shared\n"
    before = metric(judge, 'evaluations_total{kind="candidate",status="passed"}')
    jobs = [submit(judge, source).json()["id"] for _ in range(4)]
    forced = submit(judge, source, force=True).json()["id"]
    assert cancel(judge, jobs[0])["state"] == "cancelled"
    answers = [look(judge, job) for job in jobs[1:]]
    assert {answer["state"] for answer in answers} == {"done"}
    assert look(judge, forced)["cached"] is False
    assert metric(judge, 'evaluations_total{kind="candidate",status="passed"}') == before + 2

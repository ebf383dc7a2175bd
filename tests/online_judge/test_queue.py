"""Bursts against a small queue."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from .live import LiveJudge, running_judge, wait_until
from .sources import PASSING, REFERENCE, with_forward
from .test_v2_jobs import cancel, judged, look, metric, submit


def slow(seconds: float) -> dict[str, object]:
    candidate = f"import time\ntime.sleep({seconds})\n{PASSING}"
    return {"original_model_src": REFERENCE, "custom_model_src": candidate, "num_correct_trials": 1}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    with running_judge(tmp_path_factory.mktemp("judge"), MAX_QUEUE_SIZE="2") as live:
        yield live


def test_burst_is_bounded_and_the_rest_refused(judge: LiveJudge) -> None:
    seen = []
    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(judge.post, "/evaluate", slow(1.5)) for _ in range(12)]
        wait_until(lambda: judge.client.get("/queue/status").json()["total_queued"] == 2)
        seen.append(judge.client.get("/queue/status").json())
        responses = [future.result() for future in futures]
    assert seen[0]["total_processing"] == 1
    assert seen[0]["per_device"]["0"] == {"queued": 2, "processing": 1, "max_concurrent": 1}
    assert Counter(response.status_code for response in responses) == {200: 3, 503: 9}
    for response in responses:
        if response.status_code == 503:
            assert response.json()["detail"] == "Queue is full. Max queue size: 2"
            assert int(response.headers["Retry-After"]) > 0
        else:
            assert response.json()["correctness"] is True
    assert judge.client.get("/queue/status").json()["total_processing"] == 0


def test_waiting_too_long_for_a_slot_is_408(judge: LiveJudge) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(judge.post, "/evaluate", slow(3))
        wait_until(lambda: judge.client.get("/queue/status").json()["total_processing"] == 1)
        response: httpx.Response = judge.post("/evaluate", slow(3) | {"timeout": 1})
        assert response.status_code == 408
        assert response.json()["detail"] == "Request timeout: No available GPU slot within 1s"
        assert running.result().json()["correctness"] is True


def test_full_queue_refuses_the_rest_and_loses_none(judge: LiveJudge) -> None:
    sleeper = with_forward("time.sleep(60)")

    def ask(number: int) -> httpx.Response:
        text = sleeper if number % 2 else f"{sleeper}# {number}\n"  # half of them are identical
        return submit(judge, text, key=str(number))

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(120)))
    taken = {answer.json()["id"] for answer in answers if answer.status_code == 202}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert (len(taken), len(refused)) == (3, 117)
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    v1 = judge.post("/evaluate", {"original_model_src": REFERENCE, "custom_model_src": PASSING})
    assert (v1.status_code, int(v1.headers["Retry-After"]) > 0) == (503, True)
    assert judge.post("/v2/problem", {"original_model_src": REFERENCE}).status_code == 429
    states = [look(judge, job, wait=0)["state"] for job in taken]
    assert set(states) == {"queued", "running"}
    assert metric(judge, 'jobs{state="queued"}') + metric(judge, 'jobs{state="running"}') == 3
    for job in taken:
        assert cancel(judge, job)["state"] == "cancelled"
    assert judge.client.get("/queue/status").json()["total_queued"] == 0
    assert judged(judge, PASSING)["state"] == "done"

"""Bursts against a small queue."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from .live import LiveJudge, wait_until
from .sources import HONEST, REFERENCE, with_forward

SLOW = {"original_model_src": REFERENCE, "custom_model_src": with_forward("time.sleep(1)\n" + HONEST)}


def test_burst_is_bounded_and_the_rest_refused(own_judge: Callable[..., LiveJudge]) -> None:
    judge = own_judge(MAX_QUEUE_SIZE="2")
    seen = []
    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(judge.post, "/evaluate", SLOW) for _ in range(12)]
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


def test_waiting_too_long_for_a_slot_is_408(own_judge: Callable[..., LiveJudge]) -> None:
    judge = own_judge()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(judge.post, "/evaluate", SLOW | {"num_correct_trials": 2})
        wait_until(lambda: judge.client.get("/queue/status").json()["total_processing"] == 1)
        response: httpx.Response = judge.post("/evaluate", SLOW | {"timeout": 1})
        assert response.status_code == 408
        assert response.json()["detail"] == "Request timeout: No available GPU slot within 1s"
        assert running.result().json()["correctness"] is True

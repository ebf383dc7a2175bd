"""A judge on a Ray cluster of three nodes of this machine."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..live import LiveJudge, wait_until
from ..sources import PASSING, with_forward
from .cluster import START_S, Nodes, judge_on, ray_nodes, ready, workers

pytest.importorskip("ray")
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_nodes(3) as found:
        yield found


@pytest.fixture(scope="module")
def cluster_judge(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    with judge_on(nodes, tmp_path_factory.mktemp("ray")) as judge:
        ready(judge, 3)
        yield judge


def state_of(judge: LiveJudge, node: str) -> tuple[str, str]:
    return next((each["state"], each["reason"]) for each in workers(judge) if each["node"] == node)


def test_workers_are_listed(cluster_judge: LiveJudge) -> None:
    found = workers(cluster_judge)
    assert [worker["state"] for worker in found] == ["ready"] * 3
    assert len({worker["node"] for worker in found}) == 3
    assert {worker["hardware"] for worker in found} == {"CPU (Triton interpreter, sm_90)"}
    assert 'workers{state="ready"} 3.0' in cluster_judge.client.get("/metrics").text


def test_verdicts_are_those_of_one_machine(cluster_judge: LiveJudge, judge: LiveJudge) -> None:
    for candidate in (PASSING, with_forward("return x"), "import nothing_like_this\n", "def broken(:"):
        here, there = judge.evaluate(candidate), cluster_judge.evaluate(candidate)
        for answer in (here, there):
            del answer["execution_time"], answer["queue_time"]
        assert there == here


def test_failing_reference_is_a_problem_error_there_too(cluster_judge: LiveJudge) -> None:
    answer = cluster_judge.evaluate(PASSING, reference="class Model: pass\n")
    assert answer["error"].startswith("Reference failed")


def test_unknown_gpu_model_error_lists_available_devices(cluster_judge: LiveJudge) -> None:
    body = {"original_model_src": "", "custom_model_src": "", "gpu": "H100"}
    answer = cluster_judge.post("/evaluate", body)
    assert answer.status_code == 400
    assert "no device is a H100; choose gpu among: CPU (Triton interpreter, sm_90)" in answer.text


def test_worker_of_another_protocol_is_refused(
    cluster_judge: LiveJudge, nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = "import online_judge.verdict.endings as endings\nendings.PROTOCOL = 0\n"
    (tmp_path / "sitecustomize.py").write_text(patch)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    old = nodes.add()
    try:
        refused = wait_until(
            lambda: [worker for worker in workers(cluster_judge) if worker["state"] == "refused"], START_S
        )
        assert "protocol 0" in refused[0]["reason"]
    finally:
        nodes.cluster.remove_node(old)
    wait_until(lambda: len(workers(cluster_judge)) == 3, START_S)


def test_drained_node_gets_no_more_jobs(cluster_judge: LiveJudge, nodes: Nodes) -> None:
    node = nodes.nodes[-1].node_id
    command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--address", nodes.cluster.address]
    reason = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "test"]
    subprocess.run([*command, "--node-id", node, *reason], check=True, timeout=120)
    wait_until(lambda: state_of(cluster_judge, node)[0] == "draining", START_S)
    status = cluster_judge.client.get("/queue/status").json()
    assert len(status["per_device"]) == 2
    assert cluster_judge.evaluate(PASSING)["correctness"]

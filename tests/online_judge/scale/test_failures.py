"""Kills under a judge on a Ray cluster lose no job and count none twice."""

import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from online_judge.sandbox import linux

from ..live import LiveJudge, comm, parent, wait_until
from ..sources import PASSING, REFERENCE
from .cluster import START_S, Nodes, actors, judge_on, ray_nodes, ready, ready_now

pytest.importorskip("ray")
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

JOBS = int(os.environ.get("DRILL_JOBS", "60"))
ROUNDS = int(os.environ.get("DRILL_ROUNDS", "3"))
DONE_S = 600.0
"""For the whole drill on a busy machine; the time after recovery is printed."""


class Drill:
    """Jobs in flight, and their results."""

    def __init__(self, judge: LiveJudge, folder: Path) -> None:
        self.judge = judge
        self.log = folder / "judge.log"
        self.recovered = time.monotonic()
        self.ids = [self._submit(number) for number in range(JOBS)]

    def _submit(self, number: int) -> str:
        slow = f"{PASSING}\nimport time\ntime.sleep(1.5)\nTAG = {number}\n"
        request = {"original_model_src": REFERENCE, "custom_model_src": slow}
        body = {"request": {**request, "backend": "triton"}}
        answer = self.judge.client.post("/v2/jobs", json=body, headers={"Idempotency-Key": f"job {number}"})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def done(self) -> Counter[str]:
        """Count by job how often its end was logged."""
        return Counter(re.findall(r"job\.done job=(\w+)", self.log.read_text(errors="replace")))

    def wait_for_more(self, count: int = 3) -> None:
        before = len(self.done())
        wait_until(lambda: len(self.done()) >= min(before + count, JOBS), DONE_S)

    def check(self, what: str) -> None:
        """Each job is done once, and passed."""
        wait_until(lambda: len(self.done()) == JOBS, DONE_S)
        seconds = time.monotonic() - self.recovered
        lost = re.findall(r"workers_lost_total.* (\d+)", self.judge.client.get("/metrics").text)
        put_back = sum(map(int, lost))
        sys.stderr.write(f"{what}: {JOBS} jobs done {seconds:.1f} s after recovery, {put_back} put back\n")
        assert set(self.done().values()) == {1}
        assert set(self.done()) == set(self.ids)
        answers = [self.judge.client.get(f"/v2/jobs/{each}").json() for each in self.ids]
        assert {answer["verdict"]["status"] for answer in answers} == {"passed"}


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ray_nodes(3) as found:
        yield found


def devices(judge: LiveJudge) -> set[int]:
    return {worker["device"] for worker in ready_now(judge)}


def repeated(
    nodes: Nodes, folder: Path, what: str, kill: Callable[[LiveJudge, int], None], *, of_workers: bool = True
) -> None:
    """Have jobs in flight, kill something several times, and check all jobs."""
    with judge_on(nodes, folder, JUDGE_STATE=str(folder / "state.sqlite")) as judge:
        ready(judge, 3)
        drill = Drill(judge, folder)
        for number in range(ROUNDS):
            drill.wait_for_more()
            before = devices(judge)
            kill(judge, number)
            if of_workers:
                wait_until(lambda before=before: before - devices(judge), START_S)
            ready(judge, 3)
            drill.recovered = time.monotonic()
        drill.check(what)


def test_killed_worker_actors(nodes: Nodes, tmp_path: Path) -> None:
    def kill(judge: LiveJudge, number: int) -> None:
        os.kill(actors()[number], signal.SIGKILL)

    repeated(nodes, tmp_path, "worker actor", kill)


def test_killed_nodes(nodes: Nodes, tmp_path: Path) -> None:
    def kill(judge: LiveJudge, number: int) -> None:
        nodes.cluster.remove_node(nodes.nodes[-1], allow_graceful=False)
        nodes.nodes[-1] = nodes.add()

    repeated(nodes, tmp_path, "node", kill)


def test_killed_evaluators(nodes: Nodes, tmp_path: Path) -> None:
    def kill(judge: LiveJudge, number: int) -> None:
        below = [pid for actor in actors() for pid in linux.descendants(actor)]
        evaluators = [pid for pid in below if comm(pid) == "judge-evaluator"]
        os.kill(evaluators[number], signal.SIGKILL)

    repeated(nodes, tmp_path, "evaluator", kill, of_workers=False)


def test_killed_gateway(nodes: Nodes, tmp_path: Path) -> None:
    def kill(judge: LiveJudge, number: int) -> None:
        own = judge.process.pid
        (gateway,) = (pid for pid in linux.descendants(own) if parent(pid) == own)
        os.kill(gateway, signal.SIGKILL)

    repeated(nodes, tmp_path, "gateway", kill)


def test_killed_ray_head(nodes: Nodes, tmp_path: Path) -> None:
    repeated(nodes, tmp_path, "Ray head", lambda judge, number: nodes.replace())

"""A Ray cluster of several nodes on this machine, and a judge on it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from ..live import LiveJudge, running_judge, wait_until

START_S = 240.0
OPTIONS = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}


class Nodes:
    """The nodes; each test that breaks some has its own."""

    def __init__(self, count: int) -> None:
        self._start(count)

    def _start(self, count: int, **head: Any) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=OPTIONS | head)
        self.nodes = [self.cluster.head_node, *(self.add() for _ in range(count - 1))]

    def add(self) -> Any:
        return self.cluster.add_node(**OPTIONS)

    def replace(self) -> None:
        """Kill the head, and with it the cluster; start another one at the same address."""
        port = int(self.cluster.address.rpartition(":")[2])
        self.cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        self.cluster.shutdown()
        self._start(len(self.nodes), gcs_server_port=port)


@contextlib.contextmanager
def ray_nodes(count: int) -> Iterator[Nodes]:
    """Start the nodes in a folder of their own; leave no process behind."""
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # Ray's sockets need a short path
    before = {name: os.environ.get(name) for name in ("RAY_TMPDIR", "RAY_USAGE_STATS_ENABLED")}
    os.environ |= {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
    nodes = None
    try:
        nodes = Nodes(count)
        yield nodes
    finally:
        if nodes is not None:
            nodes.cluster.shutdown()
        for name, text in before.items():
            os.environ.pop(name, None)
            if text is not None:
                os.environ[name] = text
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def judge_on(nodes: Nodes, folder: Path, *, port: int = 0, **environment: str) -> Iterator[LiveJudge]:
    """Run a judge on the cluster."""
    environment = {"JUDGE_RAY": nodes.cluster.address, "MAX_QUEUE_SIZE": "1000"} | environment
    with running_judge(folder, None, port=port, **environment) as judge:
        yield judge


def workers(judge: LiveJudge) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = judge.client.get("/v2/workers").json()["workers"]
    return found


def ready(judge: LiveJudge, count: int) -> list[dict[str, Any]]:
    """Wait until as many workers are ready; return them."""
    wait_until(lambda: len(ready_now(judge)) >= count, START_S)
    return ready_now(judge)


def ready_now(judge: LiveJudge) -> list[dict[str, Any]]:
    """Return the workers that are ready; none while no judge answers."""
    time.sleep(0.2)  # it is asked again and again
    with contextlib.suppress(httpx.HTTPError):
        return [worker for worker in workers(judge) if worker["state"] == "ready"]
    return []


def actors() -> list[int]:
    """Process ids of the workers on this machine that belong to this test's clusters."""
    named = subprocess.run(["pgrep", "-f", "ray::Actor"], capture_output=True, text=True, check=False)
    mine = os.environ["RAY_TMPDIR"].encode()
    found = []
    for pid in map(int, named.stdout.split()):
        with contextlib.suppress(OSError):
            if mine in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found

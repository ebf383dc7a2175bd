"""A real judge that is killed in mid-job and started again: the client gets its verdict."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.connection import open_client
from adaexplore.judge_client.http import Evaluation, HttpJudge
from online_judge import linux
from tests.online_judge.live import comm, judge_environment, wait_until
from tests.online_judge.sources import HONEST, NOTED, REFERENCE, with_forward

pytestmark = pytest.mark.slow
TASK = Task(1, "1", "1_x", REFERENCE, "fp32", Path("1_x.py"))


@contextlib.contextmanager
def judge_at(port: int, folder: Path, state: str) -> Iterator[subprocess.Popen[bytes]]:
    announcement = folder / "announcement.json"
    announcement.unlink(missing_ok=True)
    command = [sys.executable, "-m", "online_judge", "--port", str(port), "--announce", str(announcement)]
    process = subprocess.Popen(
        [*command, "--die-with-parent"],
        env=judge_environment(JUDGE_STATE=state),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: announcement.exists() or process.poll() is not None, 90)
        assert process.poll() is None, "the judge did not start"
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.mark.parametrize("journal", [True, False])
def test_a_judge_killed_in_mid_job_still_gives_its_verdict(tmp_path: Path, journal: bool) -> None:
    slow = with_forward(NOTED + "time.sleep(0.3)\n" + HONEST)
    state = str(tmp_path / "state.sqlite") if journal else ""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: list[Verdict] = []
    with open_client() as client:
        judge = HttpJudge(
            f"http://127.0.0.1:{port}",
            Evaluation(0.05, "off", trials=1, timed_runs=1),
            client=client,
            sleep=lambda seconds: time.sleep(min(seconds, 0.2)),
        )
        thread = threading.Thread(target=lambda: found.append(judge.evaluate(TASK, slow)))
        with judge_at(port, tmp_path, state) as process:
            thread.start()
            wait_until(lambda: "noted" in map(comm, linux.descendants(process.pid)), 60)
            process.kill()
            process.wait(30)
        with judge_at(port, tmp_path, state):
            thread.join(60)
    assert [verdict.correct for verdict in found] == [True]

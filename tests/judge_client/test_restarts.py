"""A real judge that is killed in mid-job and started again: the client gets its verdict."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.http import HttpJudge
from tests.online_judge.live import LiveJudge, running_judge, wait_until
from tests.online_judge.sources import HONEST, NOTED, REFERENCE, with_forward

pytestmark = pytest.mark.slow
TASK = Task(1, "1", "1_x", REFERENCE, "fp32", Path("1_x.py"))


def kill_in_mid_job(judge: LiveJudge) -> None:
    wait_until(lambda: judge.processes("noted"), 60)
    judge.process.kill()
    judge.process.wait(30)


def test_judge_killed_mid_job_still_gives_verdict(tmp_path: Path) -> None:
    """The judge is killed twice: the second one has the journal of the first, the third knows nothing."""
    slow = with_forward(NOTED + "time.sleep(0.3)\n" + HONEST)
    state = str(tmp_path / "state.sqlite")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: list[Verdict] = []
    with open_client() as client:
        judge = HttpJudge(
            Connection(
                f"http://127.0.0.1:{port}", client=client, sleep=lambda seconds: time.sleep(min(seconds, 0.2))
            ),
            EvaluationRequest(tf32="off"),
        )
        thread = threading.Thread(target=lambda: found.append(judge.evaluate(TASK, slow)))
        with running_judge(tmp_path, port=port, JUDGE_STATE=state) as live:
            thread.start()
            kill_in_mid_job(live)
        with running_judge(tmp_path, port=port, JUDGE_STATE=state) as live:
            kill_in_mid_job(live)
        with running_judge(tmp_path, port=port, JUDGE_STATE=""):
            thread.join(60)
    assert [verdict.correct for verdict in found] == [True]

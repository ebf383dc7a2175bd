"""A judge whose Ray cluster is not reachable says so, and ends in order."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.cli.main import main

from ..live import LiveJudge, running_judge, wait_until
from ..sources import PASSING, REFERENCE

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ADDRESS = "127.0.0.1:1"
SAID = f"the Ray cluster at {ADDRESS} is not reachable"
BODY = {"original_model_src": REFERENCE, "custom_model_src": PASSING, "backend": "triton"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unreachable")


@pytest.fixture(scope="module")
def lonely(folder: Path) -> Iterator[LiveJudge]:
    """Return a judge that looks for a cluster where nothing listens."""
    with running_judge(folder, JUDGE_RAY=ADDRESS) as judge:
        wait_until(lambda: SAID in judge.client.get("/readyz").json()["reason"], 120)
        yield judge


def test_timeout_names_the_unreachable_cluster(lonely: LiveJudge) -> None:
    answer = lonely.post("/evaluate", BODY | {"timeout": 1})
    assert answer.status_code == 408
    assert answer.json()["detail"].startswith(
        f"Request timeout: No available GPU slot within 1s: {SAID} ([Errno 111] Connection refused)"
    )


def test_waiting_job_names_the_unreachable_cluster(lonely: LiveJudge) -> None:
    job = lonely.post("/v2/jobs", {"request": BODY}).json()["id"]
    answer = lonely.client.get(f"/v2/jobs/{job}").json()
    assert answer["state"] == "queued"
    assert answer["reason"].startswith(SAID)
    assert lonely.client.delete(f"/v2/jobs/{job}").json()["reason"] == ""


def test_doctor_names_the_unreachable_cluster(lonely: LiveJudge, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--judge", lonely.url]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("judge: ")]
    assert len(lines) == 1
    assert SAID in lines[0]


def test_lost_cluster_is_logged_once(lonely: LiveJudge, folder: Path) -> None:
    time.sleep(5)  # two more attempts
    log = (folder / "judge.log").read_text()
    assert log.count("is not reachable") == 1
    assert "SIGTERM handler" not in log

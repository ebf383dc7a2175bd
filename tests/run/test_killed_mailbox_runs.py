"""A mailbox run that is killed and started again uses every answer and asks nothing twice."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from tests.judge_server import HEALTH, Answer, JudgeServer
from tests.mailbox_scenario import PROBLEM, MailboxRun, kill_four_times
from tests.online_judge.live import LiveJudge

pytestmark = pytest.mark.slow

STEPS = 4
JUDGING_S = 0.7
STATED = {"hardware": HEALTH["hardware"], "versions": {"torch": "9.9", **HEALTH["versions"]}}


class DriftingJudge:
    """Answers jobs; each time that it measures is a percent longer than the one before."""

    def __init__(self) -> None:
        self._draws = itertools.count()
        self._jobs: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []

    def jobs(self, method: str, path: str, body: dict[str, Any], key: str | None) -> Answer:
        if method != "POST":
            time.sleep(JUDGING_S)
            return 200, self._jobs[re.split("[/?]", path)[3]], {}
        name, drift = f"job{len(self._jobs)}", 1.01 ** next(self._draws)
        kind = body.get("kind", "candidate")
        self.asked.append((kind, body["request"]["custom_model_src"]))
        done: dict[str, Any] = {"id": name, "kind": kind, "state": "done"}
        if kind == "profile":
            done["report"] = {"status": "passed", "profile": profile(drift)}
        elif kind == "compile":
            done["report"] = {"ok": True, "status": "passed", "message": ""}
        else:
            limits = {"strict": {"rms": 1.23e-7 * drift, "peak": 2.34e-6 * drift, "noise": 1e-7}}
            stats = {"mean": 1.5 * drift, "fast_p": 1.25 / drift}
            metrics = {"status": "passed", "compiled": True, "correctness": True, "runtime": 1.5 * drift}
            metadata = {"status": "passed", "hardware": "test", "precision": {"limits": limits}}
            done["verdict"] = {**metrics, "metadata": metadata, "runtime_stats": stats}
        self._jobs[name] = done
        return 200, {"id": name, "status": "queued", "position": 0}, {}

    def tried_the_reference(self) -> int:
        return self.asked.count(("candidate", f"{PROBLEM.format(rows=8, columns=16)}\n\nModelNew = Model\n"))


def profile(drift: float) -> dict[str, Any]:
    kernel = {"name": "scaled_relu", "calls": 1, "us": 12.3 * drift, "share": 0.8, "own": True}
    return {
        "kernels": [kernel],
        "gpu_us": 15.4 * drift,
        "wall_us": 31.5 * drift,
        "bytes": 1024,
        "flops": 0.0,
        "roofline": 0.62 / drift,
        "bound": "memory",
        "hardware": "test",
    }


@pytest.fixture
def drifting(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DriftingJudge, list[str]]]:
    """Yield a judge of a GPU whose times differ each time, and the settings that name it."""
    monkeypatch.setitem(HEALTH, "judge_device", "cuda")
    monkeypatch.setitem(HEALTH, "cuda_available", True)
    judge = DriftingJudge()
    with JudgeServer(jobs=judge.jobs, environment=STATED) as server:
        yield judge, ["use_remote_eval=true", f"remote_eval_url={server.url}", f"total_steps={STEPS}"]


Drifting = tuple[DriftingJudge, list[str]]


def test_run_killed_four_times_uses_every_answer(drifting: Drifting, tmp_path: Path) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    kill_four_times(run)
    assert len(set(run.prompts())) == len(run.prompts())
    assert run.used() == run.answers()
    assert any("repair" in key for key in run.prompts())
    assert drifting[0].tried_the_reference() == 1
    assert "asked again" not in run.log.read_text()


def test_run_with_a_real_judge_uses_every_answer(judge: LiveJudge, tmp_path: Path) -> None:
    address = ("use_remote_eval=true", f"remote_eval_url={judge.url}", "judge_device=cpu")
    run = MailboxRun(tmp_path / "run", *address, "total_steps=2")
    kill_four_times(run)
    figures = run.figures()
    assert figures["asked_twice"] == 0
    assert figures["answers_used"] == figures["answers"] == figures["prompts"] >= 2


def test_new_times_of_the_reference_keep_an_answer(drifting: Drifting, tmp_path: Path) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    run.killed_when(lambda: bool(run.waiting()))
    facts = run.folder / run.key / "reference_facts.json"
    before = facts.read_text()
    facts.unlink()
    run.answer()
    run.killed_when(lambda: run.steps() == 1 and bool(run.waiting()))
    assert facts.read_text() != before
    assert [key.rsplit(".", 2)[1] for key in run.prompts()] == ["1", "2"]
    assert run.used() == run.answers()


def test_resumed_run_without_steps_takes_the_facts(drifting: Drifting, tmp_path: Path) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    run.killed_when(lambda: bool(run.waiting()))
    other = MailboxRun(tmp_path / "other", *drifting[1], f"resume_from={run.folder}")
    other.killed_when(lambda: bool(other.waiting()))
    assert drifting[0].tried_the_reference() == 1
    assert [path.read_text() for path in other.waiting()] == [path.read_text() for path in run.waiting()]


def test_replies_are_replayed_after_new_measurements(drifting: Drifting, tmp_path: Path) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    assert run.to_the_end() == 0
    again = MailboxRun(tmp_path / "again", *drifting[1], "server_type=replay", f"replay_path={run.folder}")
    assert again.to_the_end() == 0
    assert again.used() == run.used()
    assert drifting[0].tried_the_reference() == 2


def test_replay_of_a_run_without_steps_says_so(
    drifting: Drifting, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    run.killed_when(lambda: bool(run.waiting()))
    assert main(["replay", str(run.folder), "--out", str(tmp_path / "replay")]) == 2
    assert "holds no recorded step yet" in capsys.readouterr().err


def test_unknown_cost_stays_unknown_after_a_restart(drifting: Drifting, tmp_path: Path) -> None:
    run = MailboxRun(tmp_path / "run", *drifting[1])
    run.killed_when(lambda: run.answer() and run.steps() == 1)
    run.killed_when(lambda: bool(run.waiting()))
    sessions = run.log.read_text().split("run directory")
    assert "cost=unknown" in sessions[-1]
    assert "cost=$" not in run.log.read_text()

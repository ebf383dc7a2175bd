"""A judge's facts are requested once per run, recorded, and used again on resume."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import JudgeError, RecordError
from adaexplore.core.task import Task
from adaexplore.records.run_records import RunRecords
from adaexplore.run.replay import RecordedJudge
from adaexplore.run.session import open_session
from adaexplore.settings.config import RunConfig
from tests.judge_server import HEALTH, PASSED, Answer, JudgeServer
from tests.verdicts import metadata_of

PROBLEM = (Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py").read_text()
STATED = {"hardware": HEALTH["hardware"], "versions": {"torch": "9.9", **HEALTH["versions"]}}
LIMITS = {"strict": {"rms": 1e-7, "peak": 2e-6, "noise": 1e-7}}
TENSOR = {"role": "input", "name": "0", "shape": [4, 8], "dtype": "float32", "bytes": 128}


def answer(path: str, body: dict[str, Any]) -> Answer:
    if path == "/v2/problem":
        return 200, {"ok": True, "device": "cpu", "hardware": "CPU", "tensors": [TENSOR]}, {}
    metadata = {**PASSED["metadata"], "precision": {"limits": LIMITS}}
    return 200, {**PASSED, "metadata": metadata}, {}


def run(folder: Path, url: str, steps: int = 2, **settings: object) -> list[str]:
    """Return the first prompt of each step."""
    config = RunConfig.model_validate(
        {
            "preset": "default",
            "use_remote_eval": True,
            "remote_eval_url": url,
            "server_type": "offline",
            "total_steps": steps,
            "general_memory_path": None,
            "tune_s": 0,
            **settings,
        }
    )
    task = Task(1, "2", "2_row_sum", PROBLEM, "native", Path("2_row_sum.py"))
    with open_session(config, [task], folder, threading.Event()) as session:
        list(session.progress())
    records = RunRecords(folder).task("1_2").steps()
    return [step.draft.exchanges[0].prompt for step in records if step.draft.exchanges]


def test_facts_are_requested_once_and_reused_on_resume(tmp_path: Path) -> None:
    with JudgeServer(answer, environment=STATED) as server:
        prompts = run(tmp_path, server.url)
        assert len(run(tmp_path, server.url, 3)) == 3
        assert server.asked_for_environment == 1
    with JudgeServer(answer, environment={**STATED, "versions": {"torch": "1.0", "triton": "0"}}) as server:
        prompts = run(tmp_path, server.url, 4)
    assert len(prompts) == 4
    for prompt in prompts:
        assert "- PyTorch 9.9, Triton 0\n" in prompt
        assert "input 0: float32 [4, 8], 128 B\n" in prompt
        assert "root mean square error at most about 1e-07, largest error at most about 2e-06" in prompt


def test_new_judge_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer(answer, environment=STATED) as server:
        run(tmp_path, server.url)
    monkeypatch.setitem(HEALTH, "hardware", "CPU (another)")
    moved = {**STATED, "hardware": "CPU (another)", "versions": {"torch": "8.8", "triton": "0"}}
    with JudgeServer(answer, environment=moved) as server:
        prompts = run(tmp_path, server.url, 3)
    assert "PyTorch 8.8" in prompts[-1]
    found = RunRecords(tmp_path).judge_environment()
    assert found is not None
    assert found.hardware == "CPU (another)"


def test_facts_are_requested_again_when_conditions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(steps: int, **settings: Any) -> list[dict[str, Any]]:
        with JudgeServer(answer, environment=STATED) as server:
            run(tmp_path, server.url, steps, **settings)
        return [body for path, body in server.requests if path == "/v2/problem"]

    assert len(tried(2)) == 1
    assert tried(3) == []
    monkeypatch.setitem(HEALTH, "hardware", "CPU (another)")
    assert len(tried(4)) == 1
    path = tmp_path / "1_2" / "reference_facts.json"
    facts = json.loads(path.read_text())
    assert facts["conditions"]["hardware"] == "CPU (another)"
    assert tried(5) == []
    differing: list[dict[str, object]] = [
        {"dtype": "bf16"},
        {"direction": "both"},
        {"tf32": "on"},
        {"tier": "half"},
        {"versions": {"triton": "1"}},
        {"problem": "another"},
    ]
    for steps, changed in enumerate(differing, 6):
        path.write_text(json.dumps(facts | {"conditions": facts["conditions"] | changed}))
        assert len(tried(steps)) == 1
        assert json.loads(path.read_text()) == facts
    assert tried(12) == []


def test_failed_problem_check_spoils_no_recorded_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(path: str, body: dict[str, Any]) -> Answer:
        failed = {"ok": False, "device": "cpu", "hardware": "CPU", "error": "out of memory"}
        return (200, failed, {}) if path == "/v2/problem" else answer(path, body)

    with JudgeServer(answer, environment=STATED) as server:
        run(tmp_path, server.url)
    with monkeypatch.context() as moved:
        moved.setitem(HEALTH, "hardware", "CPU (another)")
        with JudgeServer(out_of_memory, environment=STATED) as server:
            assert len(run(tmp_path, server.url, 3)) == 2
    assert RunRecords(tmp_path).task("1_2").failure() is None
    with JudgeServer(answer, environment=STATED) as server:
        assert len(run(tmp_path, server.url, 3)) == 3


def test_preset_paper_asks_for_no_facts(tmp_path: Path) -> None:
    with JudgeServer(answer, environment=STATED) as server:
        prompts = run(tmp_path, server.url, preset="paper")
        assert server.asked_for_environment == 0
    assert not any("PyTorch 9.9" in prompt or "128 B" in prompt for prompt in prompts)
    assert RunRecords(tmp_path).task("1_2").reference_facts() is None


def test_judge_without_facts_is_accepted(tmp_path: Path) -> None:
    with JudgeServer(answer) as server:
        assert run(tmp_path, server.url)
    assert RunRecords(tmp_path).judge_environment() is None


def test_lints_know_the_names_that_the_judge_stated(tmp_path: Path) -> None:
    stated = {**STATED, "triton": {"names": {"triton.language": ["constexpr"]}}}
    with JudgeServer(answer, environment=stated) as server:
        run(tmp_path, server.url, 1, repair_attempts=0)
    step = RunRecords(tmp_path).task("1_2").steps()[-1]
    assert step.draft.outcome is DraftOutcome.LINT_STOPPED
    assert step.verdict is not None
    assert "missing-triton-name" in metadata_of(step.verdict)["lints"]


def test_invalid_answer_is_one_error(tmp_path: Path) -> None:
    with JudgeServer(answer, environment={"versions": 3}) as server, pytest.raises(JudgeError) as caught:
        run(tmp_path, server.url)
    assert server.url in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_replay_has_the_recorded_facts(tmp_path: Path) -> None:
    with JudgeServer(answer, environment=STATED) as server:
        run(tmp_path, server.url)
    records = RunRecords(tmp_path)
    judge = RecordedJudge(records)
    assert judge.environment() == records.judge_environment() is not None
    task = Task(1, "2", "2_row_sum", PROBLEM, "native", Path("2_row_sum.py"))
    found = judge.check_problem(task)
    assert found is not None
    assert found == records.task("1_2").reference_facts()
    assert found.limits["strict"].peak == 2e-6


@pytest.mark.parametrize("name", ["judge_environment.json", "1_2/reference_facts.json"])
def test_damaged_facts_are_one_clear_error(tmp_path: Path, name: str) -> None:
    with JudgeServer(answer, environment=STATED) as server:
        run(tmp_path, server.url)
        (tmp_path / name).write_text('{"versions": 3, "tensors": 3}')
        with pytest.raises(RecordError, match=f"{name} is damaged: .*restore it"):
            run(tmp_path, server.url, 3)

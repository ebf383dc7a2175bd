"""Every paid reply counts, whatever its result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.core.errors import BudgetReached, JudgeUnavailableError
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.records.run_records import RunRecords
from adaexplore.run.origin import Fork
from adaexplore.run.session import open_session
from adaexplore.run.spending import spent
from adaexplore.settings.config import RunConfig

PROBLEM = (Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py").read_text()
TASK = Task(1, "2", "2_row_sum", PROBLEM, "fp32", Path("2_row_sum.py"))


def run(folder: Path, steps: int, fork: Fork | None = None, **settings: object) -> None:
    config = RunConfig.model_validate(
        {"dummy": True, "server_type": "offline", "total_steps": steps, **settings}
    )
    with open_session(config, [TASK], folder, threading.Event(), fork=fork) as session:
        list(session.progress())


def run_that_fails(folder: Path, steps: int, **settings: object) -> None:
    with pytest.raises(JudgeUnavailableError):
        run(folder, steps, **settings)


def recorded(folder: Path) -> Usage:
    steps = RunRecords(folder).task("1_2").steps()
    return sum((step.draft.usage for step in steps), Usage())


def tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


@pytest.fixture
def fails_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make the judge fail at an evaluation, counted from now on."""
    real = DummyJudge.evaluate

    def at(turn: int) -> None:
        asked = []

        def evaluate(self: DummyJudge, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            asked.append(source)
            if len(asked) == turn:
                raise JudgeUnavailableError("gone")
            return real(self, task, source, best_so_far)

        monkeypatch.setattr(DummyJudge, "evaluate", evaluate)

    return at


def test_recorded_replies_are_counted_once(tmp_path: Path) -> None:
    run(tmp_path, 3)
    run(tmp_path, 5)
    assert spent(RunRecords(tmp_path)) == (recorded(tmp_path), 5)


def test_reply_of_unrecorded_step_counts(tmp_path: Path, fails_at: Callable[[int], None]) -> None:
    fails_at(2)
    run_that_fails(tmp_path, 5)
    usage, steps = spent(RunRecords(tmp_path))
    lost = tokens(usage) - tokens(recorded(tmp_path))
    assert lost > 0
    assert steps == RunRecords(tmp_path).task("1_2").step_count() < 5
    fails_at(0)
    run(tmp_path, 5)
    usage, steps = spent(RunRecords(tmp_path))
    assert (tokens(usage) - tokens(recorded(tmp_path)), steps) == (lost, 5)


def test_run_that_keeps_failing_reaches_its_limit(tmp_path: Path, fails_at: Callable[[int], None]) -> None:
    fails_at(1)
    run_that_fails(tmp_path, 5)
    once = tokens(spent(RunRecords(tmp_path))[0])
    for _ in range(2):
        fails_at(1)
        run_that_fails(tmp_path, 5, max_total_tokens=3 * once)
    fails_at(0)
    with pytest.raises(BudgetReached, match=f"{3 * once} are spent"):
        run(tmp_path, 5, max_total_tokens=3 * once)
    assert RunRecords(tmp_path).task("1_2").step_count() == 0


def test_copied_steps_count_with_their_cost(tmp_path: Path) -> None:
    run(tmp_path / "run", 4)
    run(tmp_path / "fork", 6, Fork(tmp_path / "run", 3))
    run(tmp_path / "other", 6, resume_from=str(tmp_path / "run"))
    for folder in (tmp_path / "fork", tmp_path / "other"):
        assert spent(RunRecords(folder)) == (recorded(folder), 6)


def test_partial_line_is_left_out(tmp_path: Path) -> None:
    run(tmp_path, 2)
    noted = tmp_path / "usage.jsonl"
    noted.write_bytes(noted.read_bytes() + b'{"request": "1_2/3/lar')
    assert spent(RunRecords(tmp_path)) == (recorded(tmp_path), 2)

"""A run that may spend no more, and what one would spend."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import BudgetReached
from adaexplore.records.run_records import RunRecords

DUMMY = ["--config", "config/quickstart.yaml", "--set", "dummy=true", "--set", "num_processes=3"]


def run(folder: Path, *settings: str) -> int:
    more = [part for setting in (f"save_path={folder}", *settings) for part in ("--set", setting)]
    return main(["run", *DUMMY, "--set", "total_steps=4", *more])


def steps(folder: Path) -> int:
    records = RunRecords(folder)
    return sum(records.task(key).step_count() for key in records.tasks())


def test_budget_ends_a_run_with_everything_recorded_and_a_higher_one_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert run(folder, "max_total_tokens=60000") == BudgetReached.exit_code
    told = capsys.readouterr()
    assert "max_total_tokens: 60000 would be exceeded" in told.err
    assert "Judge evaluations" in told.out
    done = steps(folder)
    assert 0 < done < 48
    assert run(folder, "max_total_tokens=60000") == BudgetReached.exit_code
    assert steps(folder) <= done + 3  # the recorded steps count
    assert run(folder) == 0
    assert steps(folder) == 48


def test_dollars_cannot_be_limited_for_a_model_without_a_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    given = ("server_type=openai", "model_name=home-made", "max_cost_usd=5")
    assert run(tmp_path / "run", *given) == 2
    assert "max_total_tokens instead" in capsys.readouterr().err


def test_dry_run_asks_nobody_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    asked = ["--set", "server_type=openai", "--set", "model_name=gpt-5-mini", "--set", f"save_path={folder}"]
    assert main(["run", *DUMMY, *asked, "--set", "max_cost_usd=3", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "12 tasks" in told
    assert "cost: $" in told
    assert "max_cost_usd 3" in told
    assert not folder.exists()


def test_seeds_do_not_make_a_step_look_cheap_when_a_run_goes_on(tmp_path: Path) -> None:
    folder, seeds = tmp_path / "run", tmp_path / "seeds"
    seeds.mkdir()
    for number in range(5):
        (seeds / f"{number}.py").write_text(f"VALUE = {number}\n")
    one = ("test_list_path=null", "level=1", "problem_id=3", f"seed_kernel={seeds}", "num_processes=1")
    assert run(folder, *one, "total_steps=6") == 0
    (spent,) = [
        step.usage.input_tokens + step.usage.output_tokens
        for step in RunRecords(folder).task("1_3").summaries()
        if step.usage is not None and step.usage.input_tokens
    ]
    limit = f"max_total_tokens={spent * 3 // 2}"
    assert run(folder, *one, "total_steps=8", limit) == BudgetReached.exit_code
    assert steps(folder) == 6

"""Runs that reach their budget, and estimates of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import BudgetReached
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords
from adaexplore.run.vendors import vendor_of

DUMMY = ["--config", "config/quickstart.yaml", "--set", "dummy=true", "--set", "num_processes=3"]


def run(folder: Path, *settings: str) -> int:
    more = [part for setting in (f"save_path={folder}", *settings) for part in ("--set", setting)]
    return main(["run", *DUMMY, "--set", "total_steps=4", *more])


def steps(folder: Path) -> int:
    records = RunRecords(folder)
    return sum(records.task(key).step_count() for key in records.tasks())


def test_run_at_budget_continues_with_higher_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, tasks = tmp_path / "run", tmp_path / "tasks.txt"
    tasks.write_text("1 1,2,3\n2 1\n")
    few = (f"test_list_path={tasks}",)
    assert run(folder, *few, "max_total_tokens=20000") == BudgetReached.exit_code
    told = capsys.readouterr()
    assert "max_total_tokens: 20000 would be exceeded" in told.err
    assert "Judge evaluations" in told.out
    done = steps(folder)
    assert 0 < done < 16
    assert run(folder, *few, "max_total_tokens=20000") == BudgetReached.exit_code
    assert steps(folder) <= done + 3  # the recorded steps count
    assert run(folder, *few) == 0
    assert steps(folder) == 16


def test_figures_count_tasks_that_were_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, one, two = tmp_path / "run", tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("1 1,2,3\n")
    two.write_text("1 4\n")
    settings = ("max_total_tokens=3000", "num_processes=1")
    assert run(folder, f"test_list_path={one}", *settings) == BudgetReached.exit_code
    assert run(folder, f"test_list_path={two}", *settings) == BudgetReached.exit_code
    begun = RunRecords(folder).tasks()
    assert RunRecords(folder).planned() == ["1_1", "1_2", "1_3", "1_4"]
    line = f"{4 - len(begun)} of 4 tasks were not begun"
    capsys.readouterr()
    assert main(["show", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert line in shown
    assert "1_3    not begun" in shown
    assert main(["stats", str(folder)]) == 0
    assert line in capsys.readouterr().out
    assert main(["stats", str(folder), "--by", "category"]) == 0
    assert ["not", "begun", "2"] in [row.split()[:3] for row in capsys.readouterr().out.splitlines()]


def test_unpriced_model_allows_no_dollar_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    given = ("server_type=openai", "model_name=home-made", "max_cost_usd=5")
    assert run(tmp_path / "run", *given) == 2
    assert "max_total_tokens instead" in capsys.readouterr().err


def test_dry_run_sends_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    asked = ["--set", "server_type=openai", "--set", "model_name=gpt-5-mini", "--set", f"save_path={folder}"]
    assert main(["run", *DUMMY, *asked, "--set", "max_cost_usd=3", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "12 tasks" in told
    assert "cost: $" in told
    assert "max_cost_usd 3" in told
    assert not folder.exists()


def test_seeds_do_not_lower_cost_on_resume(tmp_path: Path) -> None:
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


def test_dry_run_counts_steps_with_model_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = ("test_list_path=null", "level=1", "problem_id=3", "num_processes=1", "preflight=false")
    seeds, folder = tmp_path / "seeds", tmp_path / "run"
    seeds.mkdir()
    for number in range(2):
        (seeds / f"{number}.py").write_text(f"VALUE = {number}\n")

    def told(*settings: str, command: tuple[str, ...] = ("run", *DUMMY)) -> str:
        sets = [part for setting in settings for part in ("--set", setting)]
        assert main([*command, *sets, "--dry-run"]) == 0
        return capsys.readouterr().out.splitlines()[0]

    seeded = (*one, f"save_path={folder}", f"seed_kernel={seeds}")
    assert "5 steps (besides 2 that ask none), about 5 requests" in told(*seeded, "total_steps=7")
    assert run(folder, *one) == 0  # 4 steps
    capsys.readouterr()
    assert "3 steps (besides 4 that ask none)" in told(*one, f"save_path={folder}", "total_steps=7")
    assert "0 steps (besides 4 that ask none)" in told(*one, f"save_path={folder}", "total_steps=4")
    fork = ("run", "--fork", str(folder), "--at", "3")
    assert "4 steps (besides 3 that ask none)" in told("total_steps=7", command=fork)
    taken = (*one, f"save_path={tmp_path / 'new'}", f"resume_from={folder}", "total_steps=7")
    assert "3 steps (besides 4 that ask none)" in told(*taken)


@pytest.mark.parametrize("limit", ["max_cost_usd", "max_total_tokens"])
def test_command_server_allows_no_token_limits(
    tmp_path: Path, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "run", "server_type=command", "command=cat", f"{limit}=5") == 2
    assert f"{limit}: a command reports neither tokens nor dollars" in capsys.readouterr().err


@pytest.mark.parametrize("num_processes", [1, 3])
def test_small_limit_does_not_end_run_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_processes: int
) -> None:
    dearest = Usage(input_tokens=25_000)
    priced = replace(vendor_of("offline"), cost="listed")
    monkeypatch.setattr("adaexplore.run.session.vendor_of", lambda _: priced)
    monkeypatch.setattr("adaexplore.run.estimate.Estimate.dearest_step", lambda *_: dearest)
    folder = tmp_path / "run"
    several = ("parallel_steps=4", f"num_processes={num_processes}")
    assert run(folder, *several, "max_total_tokens=60000") == BudgetReached.exit_code
    spent = sum((usage for _, usage in RunRecords(folder).usage()), Usage())
    assert spent.input_tokens + spent.output_tokens > 40_000

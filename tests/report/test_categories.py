"""Figures of each category of problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.report.categories import Judged, by_category
from adaexplore.report.task_result import Best


def kernel(problem: str, speedup: float | None, hardware: str = "H100", category: str = "Math") -> Judged:
    return Judged(problem, category, Best(correct=True, speedup=speedup, hardware=hardware))


def test_slower_kernels_and_failures_are_counted() -> None:
    failed = Judged("c", "Math", Best())
    (found,) = by_category([kernel("a", 4.0), kernel("b", 0.25), kernel("d", None), failed])
    assert (found.tasks, found.correct, found.slower) == (4, 3, 1)
    assert found.speedup == pytest.approx(1.0)
    assert found.spread is None


def test_untimed_kernels_are_not_called_slower() -> None:
    (found,) = by_category([kernel("a", None), Judged("b", "Math", Best())])
    assert (found.correct, found.slower, found.speedup) == (1, None, None)


def test_spread_is_over_gpus_of_one_problem() -> None:
    runs = [kernel("a", 2.0), kernel("a", 8.0), kernel("a", 1.0, "A100"), kernel("b", 100.0)]
    (found,) = by_category(runs)
    assert found.spread == pytest.approx(4.0)  # 4.0 on one GPU, the geometric mean, and 1.0 on the other


def test_categories_of_runs_are_printed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "2_2/reference_src.py").write_text("torch.relu(x)")
    (run / "3_1/reference_src.py").write_text("torch.relu(y)")
    assert main(["stats", str(run), str(run), "--by", "category", "--format", "json"]) == 0
    found = {each["category"]: each for each in json.loads(capsys.readouterr().out)}
    assert set(found) == {"Activation", "Other"}
    assert (found["Activation"]["tasks"], found["Activation"]["correct"]) == (4, 4)
    assert found["Activation"]["speedup"] == pytest.approx((20 * 1.2) ** 0.5)
    assert found["Other"]["slower"] == 2
    assert main(["stats", str(run), "--by", "category"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Activation", "2", "2", "0", "4.899", "-"] in lines

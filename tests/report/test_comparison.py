from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.report.comparison import compare, comparison_table
from tests.report.conftest import INTERPRETED, WRONG, Found

Write = Callable[..., None]


@pytest.fixture
def runs(tmp_path: Path, write_task: Write) -> dict[str, list[Path]]:
    """Three tasks under two seeds; `b` is twice as fast on two tasks and fails on none."""
    for seed in (0, 1):
        for key, a, b in (("1_1", 2.0, 4.0), ("1_2", 3.0, 6.0), ("1_3", 1.5, 1.5)):
            write_task(tmp_path / f"a{seed}", key, [a])
            write_task(tmp_path / f"b{seed}", key, [b])
    return {name: [tmp_path / f"{name}{seed}" for seed in (0, 1)] for name in "ab"}


def test_pairs_are_compared_task_by_task(runs: dict[str, list[Path]]) -> None:
    first, second = compare(runs)
    assert (first.correct, first.tasks, first.ratio, first.pairs) == (6, 6, None, 0)
    assert first.gm10 == pytest.approx((2 * 3 * 1.5) ** (1 / 3))
    assert second.ratio == pytest.approx(4 ** (1 / 3))
    assert second.pairs == 6
    assert second.ci_low == pytest.approx(1.0)
    assert second.ci_high == pytest.approx(2.0)


def test_equal_runs_have_no_difference(runs: dict[str, list[Path]]) -> None:
    same = compare({"a": runs["a"], "again": runs["a"]})[1]
    assert (same.ratio, same.ci_low, same.ci_high) == (1.0, 1.0, 1.0)


def test_failed_suspect_and_huge_speedups_follow_gm10(tmp_path: Path, write_task: Write) -> None:
    write_task(tmp_path / "a", "1_1", [WRONG])
    write_task(tmp_path / "a", "1_2", [100.0])
    write_task(tmp_path / "b", "1_1", [Found(8.0, {"decoy_kernel": "suspect"})])
    write_task(tmp_path / "b", "1_2", [1.0])
    _, second = compare({"a": [tmp_path / "a"], "b": [tmp_path / "b"]})
    assert second.correct == 1
    assert second.ratio == pytest.approx(math.sqrt(1.0 * 0.1))


def test_degenerate_problems_make_no_pair(tmp_path: Path, write_task: Write) -> None:
    trivial = ("degenerate_problem",)
    for name, speedup in (("a", 2.0), ("b", 4.0)):
        write_task(tmp_path / name, "1_1", [speedup])
        write_task(tmp_path / name, "1_2", [speedup])
    write_task(tmp_path / "a", "1_3", [Found(WRONG, problem_flags=trivial)])
    write_task(tmp_path / "b", "1_3", [Found(9.0, {"decoy_kernel": "suspect"}, problem_flags=trivial)])
    write_task(tmp_path / "a", "1_4", [Found(9.0, problem_flags=trivial)])
    write_task(tmp_path / "b", "1_4", [WRONG])  # its only verdict came before the flag
    first, second = compare({"a": [tmp_path / "a"], "b": [tmp_path / "b"]})
    assert (first.gm10, second.gm10) == (pytest.approx(2.0), pytest.approx(4.0))
    assert (second.ratio, second.pairs) == (pytest.approx(2.0), 2)


def test_untimed_kernels_make_no_pair(tmp_path: Path, write_task: Write) -> None:
    write_task(tmp_path / "a", "1_1", [2.0])
    write_task(tmp_path / "b", "1_1", [INTERPRETED])
    compared = compare({"a": [tmp_path / "a"], "b": [tmp_path / "b"]})
    assert (compared[1].correct, compared[1].pairs, compared[1].ratio) == (1, 0, None)
    assert comparison_table(compared).splitlines()[-1].endswith(" -")


def test_without_times_failures_make_no_figure(tmp_path: Path, write_task: Write) -> None:
    for name, third in (("a", WRONG), ("b", INTERPRETED)):
        write_task(tmp_path / name, "1_1", [INTERPRETED])
        write_task(tmp_path / name, "1_2", [WRONG])
        write_task(tmp_path / name, "1_3", [third])
    first, second = compare({"a": [tmp_path / "a"], "b": [tmp_path / "b"]})
    assert (first.correct, first.gm10) == (1, None)
    assert (second.correct, second.gm10, second.ratio, second.pairs) == (2, None, None, 0)


def test_the_table_names_the_first_configuration(runs: dict[str, list[Path]]) -> None:
    header, _, first, second = comparison_table(compare(runs)).splitlines()
    assert header.endswith("against a (95 %)")
    assert first.split()[0] == "a"
    assert second.endswith("1.587x (1.000 to 2.000, 6 pairs)")

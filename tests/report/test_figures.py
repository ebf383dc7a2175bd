"""Published figures, over all kernels and over those without suspect flags."""

from __future__ import annotations

import json

import pytest

from adaexplore.report.figures import score_sheet
from adaexplore.report.statistics import run_statistics
from adaexplore.report.tables import TableFormat, render
from adaexplore.report.task_result import Best
from tests.report.conftest import WRONG, Found

FAILED = Best()


def correct(speedup: float | None, *workloads: float, sol: float | None = None) -> Best:
    return Best(step=1, correct=True, speedup=speedup, workload_speedups=workloads, sol_score=sol)


def figures(benchmark: str, bests: list[Best], clean: list[Best], *called: bool) -> dict[str, object]:
    sheet = score_sheet(benchmark, bests, clean, called, called)
    return {each.name: (each.value, each.clean) for each in sheet}


def test_kernelbench_counts_strictly_faster_kernels() -> None:
    bests = [correct(0.5), correct(0.8), correct(1.0), correct(1.5), correct(2.5), FAILED, FAILED, FAILED]
    clean = [*bests[:4], FAILED, FAILED, FAILED, FAILED]
    found = figures("KB", bests, clean)
    assert [found[f"fast_{p}"] for p in ("0", "0.5", "0.8", "1", "1.5", "2")] == [
        (5 / 8, 4 / 8), (4 / 8, 3 / 8), (3 / 8, 2 / 8), (2 / 8, 1 / 8), (1 / 8, 0), (1 / 8, 0),
    ]  # fmt: skip
    assert found["accuracy"] == (5 / 8, 4 / 8)
    assert found["mean speedup (at most 10)"] == (pytest.approx(6.3 / 8), pytest.approx(3.8 / 8))


def test_tritonbench_counts_calls_apart_from_results() -> None:
    found = figures("TBT", [correct(2.0), correct(4.0), FAILED, FAILED], [correct(2.0)] + 3 * [FAILED],
                    True, True, True, False)  # fmt: skip
    assert found == {
        "call accuracy": (0.75, 0.75), "execution accuracy": (0.5, 0.25), "speedup": (3.0, 2.0),
    }  # fmt: skip


def test_tritonbench_leaves_out_implausible_speedups() -> None:
    bests = [correct(2.0), correct(4.0), correct(10.0), correct(500.0), correct(0.1), FAILED]
    assert figures("TBG", bests, 6 * [FAILED])["speedup"] == (3.0, None)


@pytest.mark.parametrize(
    ("calls", "accuracy"),
    [
        (("wrong_value", "launch"), 0.0),
        (("wrong_value", "not_checked"), 1.0),
        (("wrong_value", "passed"), 1.0),
    ],
)
def test_call_accuracy_needs_every_checked_call(tmp_path, write_task, metrics, calls, accuracy) -> None:
    write_task(tmp_path, "1_1", [WRONG])
    (tmp_path / "config.yaml").write_text("test_source: TBG\n")
    entry = {"name": "call", "weight": 1.0, "hidden": False, "correctness": False}
    found = metrics(WRONG)
    found["metadata"]["workloads"] = [{**entry, "status": status} for status in calls]
    (tmp_path / "1_1" / "step_1_metrics.json").write_text(json.dumps(found))
    assert run_statistics(tmp_path).score_sheet[0].value == accuracy


def test_degenerate_tasks_leave_clean_call_accuracy(run, metrics) -> None:
    path = run / "2_2" / "step_2_metrics.json"
    found = metrics(30.0)
    found["metadata"]["problem_flags"] = ["degenerate_problem"]
    path.write_text(json.dumps(found))
    (run / "config.yaml").write_text("test_source: TBT\n")
    statistics = run_statistics(run)
    (accuracy,) = (each for each in statistics.score_sheet if each.name == "call accuracy")
    assert statistics.clean.tasks == statistics.tasks - 1
    called = round(accuracy.value * statistics.tasks)
    assert accuracy.clean == pytest.approx((called - 1) / statistics.clean.tasks)


def test_flagged_kernels_leave_clean_call_accuracy(tmp_path, write_task) -> None:
    write_task(tmp_path, "1_1", [2.0])
    write_task(tmp_path, "1_2", [Found(2.0, {"no_own_kernel": "suspect"})])
    (tmp_path / "config.yaml").write_text("test_source: TBT\n")
    accuracy = run_statistics(tmp_path).score_sheet[0]
    assert (accuracy.name, accuracy.value, accuracy.clean) == ("call accuracy", 1.0, 0.5)


def test_flashinfer_bench_counts_workloads_won() -> None:
    bests = [correct(1.5, 2.0, 1.1, 0.9, 1.0), correct(4.0), FAILED]
    found = figures("FIT", bests, [FAILED, correct(4.0), FAILED])
    assert found["passed"] == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert found["win@1"] == (pytest.approx((0.5 + 1 + 0) / 3), pytest.approx(1 / 3))
    assert found["speedup"] == (pytest.approx(6**0.5), pytest.approx(4.0))


def test_untimed_kernels_neither_win_nor_lose() -> None:
    untimed = [correct(None), FAILED]
    assert figures("FIT", untimed, 2 * [FAILED])["win@1"] == (None, 0.0)
    assert figures("FIT", [correct(2.0), *untimed], 3 * [FAILED])["win@1"] == (0.5, 0.0)


def test_sol_score_of_a_failed_task_is_zero() -> None:
    found = figures("FIT", [correct(1.2, sol=0.8), correct(1.0), FAILED], 3 * [FAILED])
    assert found["SOL score"] == (pytest.approx(0.4), None)


def test_sol_score_of_zero_is_a_score() -> None:
    assert figures("FIT", [correct(0.5, sol=0.0), FAILED], 2 * [FAILED])["SOL score"] == (0.0, None)


def test_without_times_there_are_no_speedups() -> None:
    found = figures("KB", [correct(None), FAILED], [correct(None), FAILED])
    assert found["accuracy"] == (0.5, 0.5)
    assert found["fast_1"] == (None, None)


def test_workloads_and_sol_score_come_from_verdict(run, write_task, metrics) -> None:
    path = run / "2_2" / "step_2_metrics.json"
    found = metrics(30.0)
    passed = {"weight": 1.0, "hidden": False, "status": "passed", "correctness": True}
    found["metadata"]["workloads"] = [
        {"name": "a", "speedup": 2.0, "sol_score": 0.5, **passed},
        {"name": "b", "speedup": 0.5, "sol_score": 0.25, **passed},
    ]
    path.write_text(json.dumps(found))
    (run / "config.yaml").write_text("level: 2\ntest_source: 'MLSYS'\n")
    statistics = run_statistics(run)
    assert statistics.benchmark == "MLSYS"
    sheet = {each.name: each.value for each in statistics.score_sheet}
    assert sheet["SOL score"] == pytest.approx(0.375 / 3)  # two failed tasks, two without a score
    (run / "config.yaml").write_text("{level: 2, test_source: FIT}\n")
    sheet = {each.name: each.value for each in run_statistics(run).score_sheet}
    assert sheet["win@1"] == pytest.approx((0.5 + 0 + 1) / 5)


def test_sheet_is_printed_beside_the_figures_after_flags(flagged_run) -> None:
    lines = [line.split() for line in render([run_statistics(flagged_run)], TableFormat.TABLE).splitlines()]
    assert ["KB", "value", "clean"] in lines
    assert ["fast_1.5", "80.0%", "50.0%"] in lines

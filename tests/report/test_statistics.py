"""The figures are those of the definitions, computed here by hand."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import RecordError, UsageError
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords
from adaexplore.report.comparison import compare
from adaexplore.report.statistics import run_statistics, statistics_of
from adaexplore.report.tables import TableFormat, render
from adaexplore.report.task_result import Best, TaskResult
from tests.report.conftest import WRONG, Found

USAGE = {
    "input_tokens": 100,
    "cached_input_tokens": 40,
    "output_tokens": 10,
    "seconds": 1.0,
    "usd": 0.5,
    "cache_write_tokens": 20,
}


def test_figures_of_a_hand_made_run(run):
    figures = run_statistics(run)
    assert (figures.run, figures.tasks, figures.correct, figures.steps) == (str(run), 5, 3, 4)
    assert figures.accuracy == pytest.approx(3 / 5)
    assert figures.mean_speedup_all == pytest.approx((10 + 0.5 + 1.2) / 5)
    assert figures.mean_speedup_correct == pytest.approx((10 + 0.5 + 1.2) / 3)
    assert figures.mean_unclamped == pytest.approx((20 + 0.5 + 1.2) / 5)
    assert figures.gm10_all == pytest.approx((10 * 0.5 * 1.2 * 0.1 * 0.1) ** (1 / 5))
    assert figures.gm10_correct == pytest.approx((10 * 0.5 * 1.2) ** (1 / 3))
    assert figures.fast_1_2 == pytest.approx(1 / 5)  # 1.2 itself is not above 1.2
    assert figures.fast_2 == pytest.approx(1 / 5)
    assert figures.pass_at_1 == pytest.approx(2 / 5)


def test_tasks_that_were_not_begun_count_as_failed(tmp_path, write_task):
    write_task(tmp_path, "1_1", [2.0], [USAGE])
    RunRecords(tmp_path).write_environment({"tasks": ["1_1", "1_2"]})
    figures = run_statistics(tmp_path)
    assert (figures.tasks, figures.correct, figures.not_begun) == (2, 1, 1)
    assert (figures.accuracy, figures.pass_at_1, figures.mean_speedup_all) == (0.5, 0.5, 1.0)
    assert figures.clean.gm10_all == pytest.approx(math.sqrt(2.0 * 0.1))
    assert {metric.name: metric.value for metric in figures.score_sheet}["accuracy"] == 0.5
    assert figures.usd == pytest.approx(0.5)


def test_rows_are_in_natural_order_with_first_best(run):
    rows = [tuple(row.model_dump().values())[:5] for row in run_statistics(run).per_task]
    assert rows == [
        (2, 2, True, 20.0, 3),
        (2, 3, False, None, None),
        (2, 10, True, 0.5, 1),
        (3, 1, True, 1.2, 2),
        (3, 2, False, None, None),
    ]


def test_non_numeric_ids_stay_words(tmp_path, write_task):
    write_task(tmp_path, "0_my_module_2", [1.0])
    (row,) = run_statistics(tmp_path).per_task
    assert (row.level, row.problem_id) == (0, "my_module_2")


def test_step_takes_the_best_within_the_first_steps(run):
    figures = run_statistics(run, 2)
    assert [row.speedup for row in figures.per_task] == [4.0, None, 0.5, 1.2, None]
    assert figures.steps == 2
    assert run_statistics(run, 1).correct == 2
    with pytest.raises(UsageError, match="at least 1"):
        run_statistics(run, 0)


def test_under_the_interpreter_speedups_do_not_apply(tmp_path, write_task):
    write_task(tmp_path, "1_1", ["interpreted", "interpreted"])
    write_task(tmp_path, "1_2", [None, "interpreted"])
    write_task(tmp_path, "1_3", [None])
    figures = run_statistics(tmp_path)
    assert (figures.correct, figures.accuracy, figures.pass_at_1) == (
        2,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    )
    assert [row.speedup for row in figures.per_task] == [None, None, None]
    assert [row.best_step for row in figures.per_task] == [1, 2, None]
    for name in ("mean_speedup_all", "mean_speedup_correct", "mean_unclamped", "gm10_all", "gm10_correct"):
        assert getattr(figures, name) is None
    assert figures.fast_1_2 is None
    assert figures.fast_2 is None


def test_mixed_run_speedups_cover_measured_and_failed_tasks(tmp_path, write_task):
    write_task(tmp_path, "1_1", ["interpreted"])
    write_task(tmp_path, "1_2", ["interpreted", 0.8])
    write_task(tmp_path, "1_3", [None])
    figures = run_statistics(tmp_path)
    assert figures.accuracy == pytest.approx(2 / 3)
    assert figures.mean_speedup_all == pytest.approx(0.4)
    assert figures.mean_speedup_correct == pytest.approx(0.8)
    assert figures.per_task[1].best_step == 1 + 1


@pytest.mark.parametrize("passing", [False, True])
def test_without_a_gpu_failures_give_no_zeros(tmp_path, write_task, metrics, passing):
    """Neither if nothing is correct, nor in the clean figures if all that is correct is suspect."""
    suspect = Found("interpreted", {"no_own_kernel": "suspect"})
    write_task(tmp_path, "1_1", [WRONG, suspect if passing else WRONG])
    path = tmp_path / "1_1" / "step_1_metrics.json"
    found = metrics(WRONG)
    found["metadata"]["device"] = "cpu"
    path.write_text(json.dumps(found))
    figures = run_statistics(tmp_path)
    for part in (figures, figures.clean):
        assert (part.mean_speedup_all, part.gm10_all, part.fast_1_2) == (None, None, None)
    assert {row.clean for row in figures.score_sheet if row.name != "accuracy"} == {None}
    assert compare({"a": [tmp_path], "b": [tmp_path]})[1].ratio is None


def test_all_failed_tasks_give_means_of_failures(tmp_path, write_task):
    write_task(tmp_path, "1_1", [None])
    figures = run_statistics(tmp_path)
    assert (figures.mean_speedup_all, figures.fast_2, figures.accuracy) == (0.0, 0.0, 0.0)
    assert figures.gm10_all == pytest.approx(0.1)
    assert figures.mean_speedup_correct is None


def test_zero_or_infinite_speedup_counts_as_unmeasured(tmp_path, write_task):
    write_task(tmp_path, "1_1", [0.0])
    write_task(tmp_path, "1_2", [math.inf])
    figures = run_statistics(tmp_path)
    assert figures.correct == 2
    assert figures.gm10_correct is None


def test_tokens_and_cost_are_summed_within_the_steps(tmp_path, write_task):
    write_task(tmp_path, "1_1", [1.0, 2.0], [USAGE, USAGE])
    write_task(tmp_path, "1_2", [1.0], [USAGE])
    figures = run_statistics(tmp_path)
    assert figures.tokens.model_dump() == {"input": 300, "cached": 120, "written": 60, "output": 30}
    assert figures.usd == pytest.approx(1.5)
    assert run_statistics(tmp_path, 1).tokens.input == 200


def test_paid_usage_includes_replies_of_lost_steps(tmp_path, write_task):
    write_task(tmp_path, "1_1", [1.0], [USAGE])
    assert run_statistics(tmp_path).paid is None
    for request in ("1_1/1/large", "1_1/2/large", "1_1/2/large"):  # the second step was lost, and paid again
        RunRecords(tmp_path).replies.append({"request": request, **USAGE})
    figures = run_statistics(tmp_path)
    assert figures.usd == pytest.approx(0.5)
    assert figures.paid.model_dump() == {
        "requests": 3,
        "tokens": {"input": 300, "cached": 120, "written": 60, "output": 30},
        "usd": pytest.approx(1.5),
    }
    lines = [line.split() for line in render([figures], TableFormat.TABLE).splitlines()]
    assert ["paid_requests", "3"] in lines
    assert ["paid_usd", "1.5000"] in lines


def test_an_unknown_price_leaves_the_tokens_known(tmp_path, write_task):
    write_task(tmp_path, "1_1", [1.0, 2.0], [USAGE, USAGE | {"usd": None}])
    figures = run_statistics(tmp_path)
    assert (figures.usd, figures.tokens.input) == (None, 200)


def test_a_run_of_the_release_has_no_tokens(run):
    figures = run_statistics(run)
    assert figures.tokens.model_dump() == dict.fromkeys(("input", "cached", "written", "output"))
    assert figures.usd is None


def test_recorded_bests_are_used_without_step_files(tmp_path, metrics):
    for total, speedup in ((25, 1.5), (100, 3.0)):
        (tmp_path / "2_1").mkdir(exist_ok=True)
        (tmp_path / "2_1" / f"global_best_metrics_{total}.json").write_text(json.dumps(metrics(speedup)))
    figures = run_statistics(tmp_path)
    assert (figures.per_task[0].speedup, figures.per_task[0].best_step, figures.steps) == (3.0, None, 100)
    assert figures.pass_at_1 is None
    assert run_statistics(tmp_path, 50).per_task[0].speedup == 1.5
    with pytest.raises(RecordError, match="at least that many, not 10"):
        run_statistics(tmp_path, 10)


def test_linear_agents_of_the_release_are_counted(tmp_path):
    for stem, correct, stats in (
        ("2_1/proposal_0_1", False, "{}"),
        ("2_1/tune_0_2", True, "{'fast_p': 1.5}"),
        ("2_2/proposal_1", True, "{'fast_p': 2.5}"),
    ):
        (tmp_path / stem).parent.mkdir(exist_ok=True)
        (tmp_path / f"{stem}_metrics.txt").write_text(
            f"compiled=True correctness={correct} metadata={{}} runtime=1.0 runtime_stats={stats}"
        )
    (tmp_path / "2_2" / "proposal_1_log.json").write_text('{"step": 1, "step_type": "large"}')
    figures = run_statistics(tmp_path)
    assert [(row.speedup, row.best_step) for row in figures.per_task] == [(1.5, 2), (2.5, 1)]
    assert figures.pass_at_1 == 0.5


def test_a_damaged_record_is_named(run):
    (run / "2_2" / "step_2_metrics.json").write_text('{"compiled": tr')
    with pytest.raises(RecordError, match=r"step_2_metrics\.json"):
        run_statistics(run)


def test_run_that_just_began_has_no_figures(tmp_path):
    (tmp_path / "config.yaml").write_text("level: 2\n")
    figures = run_statistics(tmp_path)
    assert (figures.tasks, figures.accuracy, figures.mean_speedup_all, figures.pass_at_1) == (
        0,
        None,
        None,
        None,
    )


def test_figures_come_with_and_without_flagged_kernels(flagged_run):
    figures = run_statistics(flagged_run)
    assert (figures.tasks, figures.correct, figures.flagged) == (5, 5, 2)
    assert figures.flags == {"decoy_kernel": 2, "no_own_kernel": 1}
    assert figures.gm10_all == pytest.approx((8 * 3 * 5 * 10 * 1.5) ** (1 / 5))
    assert figures.fast_2 == pytest.approx(4 / 5)
    clean = figures.clean
    assert (clean.tasks, clean.correct) == (4, 3)  # the degenerate problem is left out
    assert clean.gm10_all == pytest.approx((2 * 3 * 1.5 * 0.1) ** (1 / 4))
    assert clean.gm10_correct == pytest.approx((2 * 3 * 1.5) ** (1 / 3))
    assert clean.fast_2 == pytest.approx(1 / 4)


def test_flags_of_problems_are_counted_apart(flagged_run):
    figures = run_statistics(flagged_run)
    assert figures.problem_flagged == 2
    assert figures.problem_flags == {"constant_inputs": 2, "degenerate_problem": 1}
    row = figures.per_task[3]
    assert (row.flags, row.problem_flags) == ((), ("degenerate_problem", "constant_inputs"))
    assert (row.clean_speedup, row.clean_step) == (900.0, 1)


def test_degenerate_problems_leave_clean_figures_unsolved_too(tmp_path, write_task):
    trivial = ("degenerate_problem",)
    write_task(tmp_path, "1_1", [2.0])
    write_task(tmp_path, "1_2", [WRONG, Found(WRONG, problem_flags=trivial)])
    write_task(tmp_path, "1_3", [Found(9.0, {"decoy_kernel": "suspect"}, problem_flags=trivial)])
    for within in (None, 1):
        figures = run_statistics(tmp_path, within)
        assert (figures.tasks, figures.clean.tasks, figures.clean.accuracy) == (3, 1, 1.0)
        assert (figures.problem_flagged, figures.problem_flags) == (2, {"degenerate_problem": 2})
        assert [row.problem_flags for row in figures.per_task] == [(), trivial, trivial]
    assert ["tasks", "3", "1"] in [line.split() for line in render([figures], TableFormat.TABLE).splitlines()]


def test_degenerate_problem_of_recorded_bests_is_known(tmp_path, metrics):
    (tmp_path / "2_1").mkdir()
    found = metrics(Found(WRONG, problem_flags=("degenerate_problem",)))
    (tmp_path / "2_1" / "global_best_metrics_9.json").write_text(json.dumps(found))
    figures = run_statistics(tmp_path)
    assert (figures.tasks, figures.clean.tasks) == (1, 0)


def test_records_of_before_give_the_same_figures(flagged_run, flagged_run_of_before):
    now, before = run_statistics(flagged_run), run_statistics(flagged_run_of_before)
    assert before.model_copy(update={"run": now.run}) == now


def test_rows_name_flags_interval_and_clean_best(flagged_run):
    first, second, third, *_ = run_statistics(flagged_run).per_task
    assert (first.speedup, first.ci_low, first.ci_high, first.flags) == (8.0, 7.8, 8.3, ("decoy_kernel",))
    assert (first.clean_speedup, first.clean_step) == (2.0, 1)
    assert (second.flags, second.clean_speedup, second.clean_step) == ((), 3.0, 1)
    assert (third.clean_speedup, third.clean_step) == (None, None)


def test_without_flags_the_clean_figures_are_the_figures(run):
    figures = run_statistics(run)
    clean = figures.clean.model_dump()
    assert (figures.flagged, figures.problem_flagged) == (0, 0)
    assert clean == {name: getattr(figures, name) for name in clean}


def test_clean_best_is_known_from_recorded_bests(tmp_path, metrics):
    flagged = metrics(4.0) | {"metadata": {"integrity": ["no_own_kernel"]}}
    (tmp_path / "2_1").mkdir()
    (tmp_path / "2_1" / "global_best_metrics_9.json").write_text(json.dumps(flagged))
    assert run_statistics(tmp_path).per_task[0].clean_speedup is None
    (tmp_path / "2_1" / "global_best_clean_metrics_9.json").write_text(json.dumps(metrics(1.5)))
    row = run_statistics(tmp_path).per_task[0]
    assert (row.speedup, row.flags, row.clean_speedup) == (4.0, ("no_own_kernel",), 1.5)


bests = st.one_of(
    st.just(Best()),
    st.builds(lambda speedup: Best(1, True, speedup), st.floats(0.01, 1000)),
    st.just(Best(1, True, None, True)),
)


def of(found: list[Best]) -> list[TaskResult]:
    return [
        TaskResult(f"1_{number}", best, (best,), best.correct, 1, Counter(), Usage(), None, best)
        for number, best in enumerate(found)
    ]


@given(st.lists(bests, min_size=1, max_size=12))
def test_figures_are_ordered(found):
    figures = statistics_of("run", of(found))
    assert 0 <= figures.accuracy <= 1
    assert figures.correct == sum(row.correct for row in figures.per_task)
    if figures.mean_speedup_all is None:
        assert all(best.speedup is None for best in found)
        return
    assert figures.fast_2 <= figures.fast_1_2 <= figures.accuracy + 1e-12
    assert figures.mean_speedup_all <= figures.mean_unclamped + 1e-9
    assert figures.mean_speedup_all <= 10 + 1e-9
    assert 0.01 - 1e-9 <= figures.gm10_all <= 10 + 1e-9
    if figures.mean_speedup_correct is not None:
        assert figures.mean_speedup_all <= figures.mean_speedup_correct + 1e-9
        assert figures.gm10_correct <= figures.mean_speedup_correct + 1e-9


@given(st.lists(bests, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_figures_ignore_the_order_of_tasks(found, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    first, second = statistics_of("run", of(found)), statistics_of("run", of(shuffled))
    for name in ("accuracy", "mean_speedup_all", "mean_unclamped", "gm10_all", "fast_1_2", "fast_2"):
        assert getattr(first, name) == pytest.approx(getattr(second, name))

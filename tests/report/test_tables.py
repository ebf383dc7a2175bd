"""Each format carries the same figures."""

from __future__ import annotations

import csv
import io
import json

import pytest

from adaexplore.records.run_records import RunRecords
from adaexplore.report.statistics import run_results, run_statistics
from adaexplore.report.tables import TableFormat, best_prefix, render
from adaexplore.report.text import count_of, text_table, wrapped

KEYS = [
    "run", "tasks", "correct", "accuracy", "mean_speedup_all", "mean_speedup_correct", "mean_unclamped",
    "gm10_all", "gm10_correct", "fast_1_2", "fast_2", "pass_at_1", "steps", "steps_taken", "tokens", "usd",
    "per_task", "flagged", "flags", "problem_flagged", "problem_flags", "clean", "savings", "paid",
    "benchmark", "score_sheet", "not_begun",
]  # fmt: skip


def test_json_is_object_for_one_run_otherwise_array(run):
    figures = run_statistics(run)
    one = json.loads(render([figures], TableFormat.JSON))
    assert list(one) == KEYS
    assert list(one["tokens"]) == ["input", "cached", "written", "output"]
    assert list(one["per_task"][0])[:5] == ["level", "problem_id", "correct", "speedup", "best_step"]
    assert one["per_task"][2]["problem_id"] == 10
    assert one["per_task"][1]["speedup"] is None
    assert json.loads(render([figures, figures], TableFormat.JSON)) == [one, one]


def test_csv_has_a_line_a_run(run):
    figures = run_statistics(run)
    rows = list(csv.DictReader(io.StringIO(render([figures, figures], TableFormat.CSV))))
    assert len(rows) == 2
    assert float(rows[0]["accuracy"]) == pytest.approx(0.6)
    assert rows[0]["tokens_input"] == rows[0]["paid_usd"] == ""
    assert "per_task" not in rows[0]


def test_table_of_one_run_lists_aligned_tasks(run):
    lines = render([run_statistics(run)], TableFormat.TABLE).splitlines()
    assert lines[0].split() == ["level", "problem_id", "correct", "speedup", "best_step"]
    assert lines[2].split() == ["2", "2", "yes", "20.000", "3"]
    assert lines[3].split() == ["2", "3", "no", "-", "-"]
    assert {line.index("yes") for line in lines if "yes" in line} == {lines[0].index("correct")}
    assert any(line.split() == ["accuracy", "60.0%"] for line in lines)


def test_table_of_several_runs_has_line_per_run(run):
    figures = run_statistics(run)
    table, *sheets = render([figures, figures], TableFormat.TABLE).split("\n\n")
    lines = table.splitlines()
    assert len(lines) == 4
    assert lines[2] == lines[3]
    assert len(sheets) == 2


@pytest.mark.parametrize("table_format", [TableFormat.TABLE, TableFormat.MD])
def test_tables_end_with_tasks_not_begun(run, table_format):
    assert "not begun" not in render([run_statistics(run)], table_format)
    RunRecords(run).write_environment({"tasks": ["2_2", "4_1", "4_2"]})
    text = render([run_statistics(run)], table_format)
    assert text.splitlines()[-1] == f"{run}: 2 of 7 tasks were not begun"


def test_markdown_escapes_what_would_break_a_row(run):
    figures = run_statistics(run).model_copy(update={"run": "a|b"})
    text = render([figures, figures], TableFormat.MD)
    assert text.splitlines()[1].startswith("| --- |")
    assert "a\\|b" in text
    assert len(render([figures], TableFormat.MD).split("\n\n")) == 3


def test_markdown_of_runs_has_a_column_a_run(run):
    figures = run_statistics(run)
    lines = render([figures, figures.model_copy(update={"run": "other"})], TableFormat.MD).splitlines()
    assert lines[:3] == [f"| figure | {run} | other |", "| --- | --- | --- |", "| tasks | 5 | 5 |"]


def test_markdown_keeps_the_indent_of_parts(flagged_run):
    assert "| \N{NO-BREAK SPACE}\N{NO-BREAK SPACE}decoy_kernel | 2 |  |" in render(
        [run_statistics(flagged_run)], TableFormat.MD
    )


@pytest.mark.parametrize("table_format", [TableFormat.TABLE, TableFormat.MD])
def test_run_table_shows_flags_and_clean_figures(flagged_run, table_format):
    text = render([run_statistics(flagged_run)], table_format).replace("|", " ")
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][3:] == [
        "speedup", "ci_low", "ci_high", "best_step", "clean_speedup", "clean_step", "flags",
        "problem_flags",
    ]  # fmt: skip
    assert ["2", "1", "yes", "8.000", "7.800", "8.300", "2", "2.000", "1", "decoy_kernel", "-"] in lines
    assert ["2", "3", "yes", "5.000", "-", "-", "1", "-", "-", "no_own_kernel", "decoy_kernel", "-"] in lines
    assert ["figure", "value", "clean"] in lines
    assert ["fast_2", "80.0%", "25.0%"] in lines
    assert ["flagged", "2"] in lines
    assert ["decoy_kernel", "2"] in lines
    assert ["problem_flagged", "2"] in lines
    assert ["degenerate_problem", "1"] in lines


def test_clean_figures_appear_if_any_run_is_flagged(run, flagged_run):
    figures = [run_statistics(run), run_statistics(flagged_run)]
    header = render(figures, TableFormat.TABLE).splitlines()[0].split()
    assert {"flagged", "flags", "clean_correct", "clean_gm10_all", "clean_fast_2"} < set(header)
    assert "flagged" not in render([figures[0]] * 2, TableFormat.TABLE)
    rows = list(csv.DictReader(io.StringIO(render(figures, TableFormat.CSV))))
    assert [row["flagged"] for row in rows] == ["0", "2"]
    assert rows[1]["flags"] == "decoy_kernel no_own_kernel"
    assert rows[1]["problem_flags"] == "constant_inputs degenerate_problem"
    assert float(rows[1]["clean_correct"]) == 3
    assert rows[0]["clean_gm10_all"] == rows[0]["gm10_all"]


def test_wide_table_drops_columns_then_becomes_blocks(run, tmp_path):
    figures = [run_statistics(run).model_copy(update={"run": f"run {number}"}) for number in range(3)]
    lines = render(figures, TableFormat.TABLE, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("run")] == ["run: run 0", "run: run 1", "run: run 2"]
    assert ["accuracy", "60.0%"] in [line.split() for line in lines]
    wide = render(figures, TableFormat.TABLE, 210).split("\n\n")[0].splitlines()
    assert len(wide) == 5
    assert max(map(len, wide)) <= 210
    assert "tokens_input" not in wide[0]


def test_lines_are_wrapped_between_words():
    path = "/a/long/path" * 9
    assert wrapped(f"  one two three {path}", 12) == f"  one two\n    three\n    {path}"
    assert wrapped("short\n\nlines", 12) == "short\n\nlines"


@pytest.mark.parametrize(("number", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")])
def test_one_thing_is_not_several(number, text):
    assert count_of(number, "task") == text


def test_a_table_without_rows_is_its_header():
    assert text_table(["a", "bc"], []) == "a  bc\n-  --"


def test_best_prefix_is_the_best_after_each_step(run):
    prefix = best_prefix(run_results(run))
    assert list(prefix) == ["2_2", "2_3", "2_10", "3_1", "3_2"]
    assert prefix["2_2"] == [
        {"step": 1, "best_step": None, "correct": False, "speedup": None},
        {"step": 2, "best_step": 2, "correct": True, "speedup": 4.0},
        {"step": 3, "best_step": 3, "correct": True, "speedup": 20.0},
        {"step": 4, "best_step": 3, "correct": True, "speedup": 20.0},
    ]
    assert [entry["speedup"] for entry in prefix["2_10"]] == [0.5, 0.5, 0.5]
    assert prefix["3_2"] == []


def test_nothing_is_written_while_reading(run):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    render([run_statistics(run)], TableFormat.TABLE)
    best_prefix(run_results(run))
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before

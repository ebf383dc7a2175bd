"""The closing table says what came of each task, and where the kernels are."""

from __future__ import annotations

import json

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.report.closing import closing_report, verdict_text
from adaexplore.report.statistics import run_statistics
from tests.verdicts import make_verdict

USAGE = {"input_tokens": 4000, "cached_input_tokens": 0, "output_tokens": 900, "seconds": 1.0, "usd": 0.25}


def rows(text: str) -> dict[str, str]:
    return {
        line.split()[0]: " ".join(line.split()[1:])
        for line in text.splitlines()
        if line and not any(note in line for note in (": the best", ": the problem", "no correct kernel"))
    }


def test_a_row_a_task_and_a_total(run):
    found = rows(closing_report(run, 4))
    assert found["2_2"] == "20.00x 4 3 passed, 1 wrong_value -"
    assert found["2_3"] == "none correct 2 2 wrong_value -"
    assert found["3_2"].startswith("not run 0 too large")
    assert found["total"] == "3 of 5 correct 11 7 passed, 4 wrong_value -"


def test_several_kernels_are_named_by_their_pattern(run):
    assert closing_report(run, 4).splitlines()[-2] == f"Best kernels: {run}/*/global_best_kernel_4.py"


def test_one_task_names_its_kernel_and_its_cost(tmp_path, write_task):
    write_task(tmp_path, "1_1", [None, "interpreted"], [USAGE, USAGE])
    text = closing_report(tmp_path, 2)
    assert (
        rows(text)["1_1"] == "correct (interpreter) 2 1 passed, 1 wrong_value $0.5000, 8,000 + 1,800 tokens"
    )
    assert "total" not in text
    assert text.splitlines()[-2] == f"Best kernel: {tmp_path}/1_1/step_2.py"
    (tmp_path / "1_1" / "global_best_kernel_2.py").write_text("")
    assert (
        closing_report(tmp_path, 2).splitlines()[-2] == f"Best kernel: {tmp_path}/1_1/global_best_kernel_2.py"
    )


def test_suspect_kernel_is_listed_with_best_clean_one(flagged_run):
    text = closing_report(flagged_run, 3)
    found = rows(text)
    assert found["2_1"].startswith("8.00x (7.80-8.30) suspect 3")
    assert found["2_2"].startswith("3.00x (2.90-3.10) 1")
    notes = [line for line in text.splitlines() if "the best kernel is suspect" in line]
    assert notes == [
        "2_1: the best kernel is suspect (decoy_kernel); the best without flags: 2.00x (step 1)",
        "2_3: the best kernel is suspect (no_own_kernel, decoy_kernel); no kernel is without flags",
    ]


def test_flagged_problem_has_its_own_line(flagged_run):
    text = closing_report(flagged_run, 3)
    assert rows(text)["2_4"].startswith("900.00x 1")
    assert [line for line in text.splitlines() if "the problem is flagged" in line] == [
        "2_4: the problem is flagged (degenerate_problem, constant_inputs)",
        "2_5: the problem is flagged (constant_inputs)",
    ]


def test_without_a_correct_kernel_none_is_named(tmp_path, write_task):
    write_task(tmp_path, "1_1", [None])
    assert closing_report(tmp_path, 1).splitlines()[-2] == "No task has a correct kernel yet."


def test_only_the_tasks_asked_for_are_shown(run):
    assert set(rows(closing_report(run, 4, ["2_2"]))) == {
        "task",
        "----",
        "2_2",
        "Outcomes:",
        "Judge",
        "Best",
        "Next:",
    }


def test_a_task_without_a_correct_kernel_says_why(run):
    notes = [line for line in closing_report(run, 4).splitlines() if line.startswith("2_3: ")]
    assert notes == [
        "2_3: no correct kernel; most often wrong_value (2 of 2 steps), the last time in step 2; "
        f"see {run}/2_3"
    ]
    refused = [line for line in closing_report(run, 4).splitlines() if line.startswith("3_2: ")]
    assert len(refused) == 1
    assert "too large" in refused[0]


def test_most_frequent_failure_quotes_the_judges_text(tmp_path, write_task):
    write_task(tmp_path, "1_1", [None, None])
    path = tmp_path / "1_1" / "step_2_metrics.json"
    found = json.loads(path.read_text())
    found["metadata"]["feedback"] = "compile in line 3:\n  no such operator " + "x" * 300
    path.write_text(json.dumps(found))
    note = next(line for line in closing_report(tmp_path, 2).splitlines() if line.startswith("1_1: "))
    assert ": compile in line 3: no such operator...; see" in note


def test_a_replay_says_that_no_judge_was_asked(run):
    (run / "environment.json").write_text('{"replay_of": "/some/run"}')
    assert "(of the recorded run; a replay asks no judge)" in closing_report(run, 4)


def test_suggested_command_can_be_run(tmp_path, write_task):
    folder = tmp_path / "a run"
    write_task(folder, "1_1", [None])
    assert closing_report(folder, 1).splitlines()[-1] == f"Next: adaexplore show '{folder}' 1_1"


def test_report_fits_terminal_and_agrees_with_stats(run):
    report = closing_report(run, 4, width=60)
    assert all(len(line) <= 60 or str(run) in line for line in report.splitlines())
    assert "Outcomes: 7 passed, 4 wrong_value" in report
    assert rows(closing_report(run, 4))["total"].split()[4] == str(run_statistics(run).steps_taken)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (None, "-"),
        (Verdict(status=Status.COMPILE), "compile"),
        (make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.526}), "1.53x"),
        (
            make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"}),
            "correct (interpreter)",
        ),
        (Verdict(status=Status.PASSED), "correct (not timed)"),
    ],
)
def test_verdict_text_is_short(verdict, text):
    assert verdict_text(verdict) == text

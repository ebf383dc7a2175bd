"""Commands about runs of each format of records print what they printed when the runs were stored."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from adaexplore.cli.main import main
from adaexplore.core.plan import StepKind
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import best_curve
from adaexplore.report.closing import closing_report
from tests.stored_runs.outputs import OF_THE_RELEASE, OF_THIS_PROJECT, RUNS, TASK, expected, outputs, unpack


@pytest.mark.parametrize("name", RUNS)
def test_stored_runs_are_read_as_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unpack(tmp_path))
    made = outputs(name)
    assert made == {command: expected(name, command).read_text("utf-8") for command in made}


@pytest.mark.parametrize("name", [*OF_THIS_PROJECT, *OF_THE_RELEASE])
def test_kernel_of_the_parent_has_no_verdict(name: str, tmp_path: Path) -> None:
    steps = RunRecords(unpack(tmp_path) / "runs" / name).task(TASK).steps()
    kernels = {record.node.plan.step: record.draft.source for record in steps}
    kept = [
        record
        for record in steps
        if record.node.plan.kind is StepKind.SMALL
        and record.draft.source
        and record.draft.source == kernels[record.node.plan.parent_id]
    ]
    assert all(record.result.edit_failed and record.result.verdict is None for record in kept)
    assert bool(kept) is ("irle" not in name)


def test_step_curve_leaves_failed_edits_out(tmp_path: Path) -> None:
    curve = best_curve(RunRecords(unpack(tmp_path) / "runs/mcts").task(TASK).summaries())
    assert [entry["step"] for entry in curve if entry["current_runtime"] is not None] == [1, 5]
    assert [entry["fast_p"] for entry in curve][1:5] == [1.5, 1.5, 1.5, 1.8]


def test_closing_report_counts_failed_edits_as_such(tmp_path: Path) -> None:
    text = closing_report(unpack(tmp_path) / "runs/mcts", 11)
    assert (
        "Outcomes: 2 edit failed (not applied), 2 edit failed (unchanged), 2 passed, 1 compile, "
        "1 edit failed (cut), 1 edit failed (empty), 1 no kernel (no code), 1 no kernel (refused)\n"
    ) in text


def test_repeated_tree_marks_failed_edits(tmp_path: Path) -> None:
    run = unpack(tmp_path) / "runs/mcts"
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 0
    lines = (tmp_path / "again" / TASK / "tree_structure.txt").read_text().splitlines()
    marked = {int(line.split("]")[0].strip(" [")): line.partition("result=")[2] for line in lines}
    assert marked[2] == "edit failed (unchanged)"
    assert marked[11] == "edit failed (not applied)"
    assert {step for step, result in marked.items() if not result} == {0, 1, 3, 5, 7, 8}


def test_progress_counts_failed_edits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = unpack(tmp_path) / "runs/irs"
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 0
    assert "edits failed=3" in capsys.readouterr().err


def test_compile_error_starts_with_its_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unpack(tmp_path) / "runs/failed"
    reason = "CompilationError: arange's arguments must be a power of two"
    assert main(["show", str(run)]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("   1  large")]
    assert row.index(reason) < row.index("in kernel row_sum, line 11") < row.index("line 305, in visit")
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["show", str(run)]) == 0
    assert reason in capsys.readouterr().out
    notes = [line for line in closing_report(run, 1).splitlines() if line.startswith(TASK)]
    assert reason in notes[-1]

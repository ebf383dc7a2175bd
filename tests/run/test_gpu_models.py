"""A run on several GPU models follows the first and reports the best kernel on each."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import JudgeError
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.records.task_records import TaskRecords
from adaexplore.report.closing import notes_on_best
from adaexplore.report.statistics import statistics_of
from adaexplore.report.tables import TableFormat, render
from adaexplore.report.task_result import task_result
from adaexplore.run.solve import solve
from tests.run.parts import StubJudge, contents, run_all, solver
from tests.verdicts import make_verdict


class Gpu(StubJudge):
    """Kernels have speedups in the order of their arrival, or its reverse; one is wrong here alone."""

    def __init__(self, name: str, *, reverse: bool = False, wrong: int | None = None) -> None:
        super().__init__()
        self.name, self.reverse, self.wrong = name, reverse, wrong

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        self.judged.append(source)
        number, on = len(self.judged), {"hardware": self.name}
        if number == self.wrong:
            return make_verdict(status=Status.WRONG_VALUE, metadata=on)
        stats = {"fast_p": 100.0 / number if self.reverse else float(number)}
        return make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats=stats, metadata=on)


def test_best_on_each_gpu_is_reported(tmp_path: Path) -> None:
    first, second = Gpu("NVIDIA H100", wrong=1), Gpu("NVIDIA H200", reverse=True, wrong=1)
    run_all(tmp_path / "1_1", judge=first, other_gpus={"H200": second})
    assert second.judged == first.judged[1:]  # what fails on the first is not tried on the other
    result = task_result(TaskRecords(tmp_path / "1_1", "MCTS"), None)
    speedups = {gpu: best.speedup for gpu, best in result.by_gpu.items()}
    assert speedups == {"NVIDIA H100": float(len(first.judged)), "NVIDIA H200": 50.0}
    assert result.best.speedup == speedups["NVIDIA H100"]
    steps = {gpu: best.step for gpu, best in result.by_gpu.items()}
    assert notes_on_best(result) == [
        f"1_1: the best on NVIDIA H100: {len(first.judged):.2f}x (step {steps['NVIDIA H100']})",
        f"1_1: the best on NVIDIA H200: 50.00x (step {steps['NVIDIA H200']})",
    ]
    table = render([statistics_of("a run", [result])], TableFormat.MD)
    assert f"| 50.000 (step {steps['NVIDIA H200']}) |" in table


def test_continued_run_keeps_verdicts_of_all_gpus(tmp_path: Path) -> None:
    judges: dict[str, Any] = {"judge": Gpu("A"), "other_gpus": {"B": Gpu("B", reverse=True)}}
    run_all(tmp_path / "1_1", total_steps=4, **judges)
    before = contents(tmp_path / "1_1")
    again: dict[str, Any] = {"judge": Gpu("A"), "other_gpus": {"B": Gpu("B")}}
    run_all(tmp_path / "1_1", total_steps=6, **again)
    after = contents(tmp_path / "1_1")
    assert all("tree" in name for name in before if after[name] != before[name])
    assert len(again["other_gpus"]["B"].judged) == len(again["judge"].judged) <= 2


def test_step_is_not_kept_if_another_gpu_fails(tmp_path: Path) -> None:
    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            raise JudgeError("its GPU is gone")

    parts = solver(tmp_path / "1_1", judge=Gpu("A"), other_gpus={"B": Broken()})
    with pytest.raises(JudgeError, match="its GPU is gone"):
        list(solve(parts, threading.Event()))
    assert parts.records.step_count() == 0

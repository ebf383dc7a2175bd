"""The loop of Adapt in small: the writer, the run and the memory are real, the judge knows five mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.run import session
from adaexplore.run.build import JudgeAccess
from adaexplore.settings.config import RunConfig
from skill_memory.store import read_rules
from tests.run.parts import StubJudge
from tool_scripts.bench_memory_loop import PLUMBING, interval, measure

SET = Path(__file__).parents[2] / "datasets" / "KernelBench_syn" / "syn_v1"
ERRORS = {
    r"tl\.tanh\(": "AttributeError(\"module 'triton.language' has no attribute 'tanh'\")",
    r"tl\.(?:exp|sqrt|log)f\(": "AttributeError(\"module 'triton.language' has no attribute 'expf'\")",
    r"= tl\.float32\(": "TypeError(\"'dtype' object is not callable\")",
    r"^def .*\b(?:BLOCK|TILE_M)(?:,|\))": "arange's arguments must be of type tl.constexpr",
    r"block = size$": "arange's range must be a power of 2",
}


class KnowingJudge(StubJudge):
    """Finds the writer's five teachable mistakes, and nothing else."""

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        for pattern, error in ERRORS.items():
            found = re.search(pattern, source, re.MULTILINE)
            if found is not None:
                metadata = {"runtime_error": error, "runtime_error_name": "triton.CompilationError"}
                return Verdict(status=Status.COMPILE, metadata=metadata)
        return Verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"})


@pytest.mark.skipif(not SET.is_dir(), reason="no synthesised tasks here")
def test_what_a_run_learns_keeps_the_next_one_from_the_same_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def stub(*_: Any, **__: Any) -> Iterator[JudgeAccess]:
        judge = KnowingJudge()
        yield JudgeAccess((judge,), judge.identity())

    monkeypatch.setattr(session, "open_judge", stub)
    (tmp_path / "learn.txt").write_text("1 1-15\n")
    (tmp_path / "test.txt").write_text("1 101-120\n")
    config = RunConfig(
        agent_type="PS",
        test_source="SYN",
        problem_root=str(SET),
        server_type="offline",
        general_memory_path=None,
        knowledge_1_threshold=2,
        num_processes=2,
    )
    found = measure(config, tmp_path / "learn.txt", tmp_path / "test.txt", 4, tmp_path)
    assert (found.learnt_from, found.tested_on, found.meaning) == (15, 20, PLUMBING)
    assert found.failures >= 2
    assert found.model_calls >= 1
    assert found.shown >= 1
    assert found.better >= 1
    assert found.worse == 0
    assert found.with_memory > found.without
    assert found.difference == pytest.approx(found.better / 20)
    assert all(rule.count >= 2 for rule in read_rules(tmp_path / "memory.jsonl"))


def test_the_interval_holds_zero_for_chance_and_not_for_a_clear_effect() -> None:
    low, high = interval([0] * 80 + [1, -1] * 10)
    assert low < 0 < high
    low, high = interval([0] * 85 + [1] * 15)
    assert 0 < low < 0.15 < high

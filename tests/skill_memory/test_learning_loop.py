"""Does what a run learns reach the next run? Writer, runs and memory are real, the judge knows five mistakes.

The offline writer makes none of the mistakes that a rule in its prompt warns of, and both test runs use the
same random draws, so what differs between them is what the rules did.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.records.run_records import RunRecords
from adaexplore.run import session
from adaexplore.run.build import open_model
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.tasks.sources import load_tasks
from skill_memory.build import build
from skill_memory.failures.sources import from_run
from skill_memory.store import injected, read_rules
from tests.run.parts import StubJudge
from tests.verdicts import make_verdict

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
                return make_verdict(status=Status.COMPILE, metadata=metadata)
        return make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"})


def passed(config: RunConfig, folder: Path) -> dict[str, bool]:
    """Run, and return for each task whether the first kernel was correct."""
    tasks = load_tasks(config, read_environment({}))
    with session.open_session(config, tasks, folder, threading.Event()) as opened:
        assert all(news.problem is None for news in opened.progress())
    records = RunRecords.existing(folder)
    found = {}
    for key in records.tasks():
        verdict = next(step.verdict for step in records.task(key).summaries() if step.step == 1)
        found[key] = verdict is not None and verdict.correct
    return found


@pytest.mark.skipif(not SET.is_dir(), reason="no synthesised tasks here")
def test_what_a_run_learns_prevents_mistakes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stub(*_: Any, **__: Any) -> Iterator[JudgeAccess]:
        judge = KnowingJudge()
        yield JudgeAccess([judge])

    monkeypatch.setattr(session, "open_judge", stub)
    (tmp_path / "learn.txt").write_text("1 1-30\n")
    (tmp_path / "test.txt").write_text("1 101-120\n")
    base = RunConfig(
        agent_type="PS",
        test_source="SYN",
        problem_root=str(SET),
        server_type="offline",
        general_memory_path=None,
        knowledge_1_threshold=2,
        num_processes=2,
    )
    learning = {"test_list_path": str(tmp_path / "learn.txt"), "total_steps": 4}
    assert len(passed(base.model_copy(update=learning), tmp_path / "learn")) == 30
    memory = tmp_path / "memory.jsonl"
    built = build(from_run(tmp_path / "learn"), memory, open_model(base, None, threading.Event()))
    assert built.failures >= 2
    assert built.model_calls >= 1
    assert injected(read_rules(memory), base.knowledge_1_threshold)
    assert all(rule.count >= 2 for rule in read_rules(memory))

    testing = base.model_copy(update={"test_list_path": str(tmp_path / "test.txt"), "total_steps": 1})
    without = passed(testing, tmp_path / "without")
    remembering = testing.model_copy(update={"general_memory_path": str(memory)})
    remembered = passed(remembering, tmp_path / "with")
    assert len(without) == len(remembered) == 20
    assert all(remembered[key] >= without[key] for key in without)
    assert sum(remembered.values()) > sum(without.values())

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Status, Verdict
from adaexplore.run.memory import open_memory
from adaexplore.settings.config import RunConfig
from tests.stub_model import StubModel

RULE = "You cannot call a dtype as a function; use the method to of a tensor instead."
TASK = Task(1, "2", "2_x", "", "fp32", Path("2_x.py"))


def failed(step: int, message: str, evaluated: bool = True) -> StepRecord:
    node = NodeState(Plan(step, StepKind.LARGE, 0), 1, 1, 0.0, 0.0, NO_SCORE, 2, 0, NO_SCORE)
    verdict = Verdict(status=Status.COMPILE, metadata={"compilation_error": f"TypeError: {message}"})
    return StepRecord(node, Draft(DraftOutcome.WRITTEN, "x = 1\n", (), Usage()), verdict, evaluated)


def test_failures_that_the_judge_saw_become_rules_and_their_cost_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = RunConfig.model_validate(
        {"memory_update": True, "general_memory_path": str(tmp_path / "m.txt"), "knowledge_1_threshold": 1}
    )
    model = StubModel(lambda _: RULE)
    memory = open_memory(config, model, tmp_path / "run")
    assert memory.rules() == ()
    with caplog.at_level(logging.INFO):
        memory.task_finished(TASK, [failed(1, "not callable"), failed(2, "another", evaluated=False)])
    assert memory.rules() == (RULE,)
    assert len(model.requests) == 1
    assert "task 1_2 brought 1 new rules and raised 0; 1 requests, cost $0.0000" in caplog.text

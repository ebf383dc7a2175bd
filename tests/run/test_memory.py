from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Status, Verdict
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.run.memory import open_memory
from adaexplore.settings.config import RunConfig
from skill_memory.rule import Rule, Verified
from skill_memory.store import read_rules, write_rules
from tests.stub_model import StubModel

RULE = "You cannot call a dtype as a function; use the method to of a tensor instead."
TASK = Task(1, "2", "2_x", "", "fp32", Path("2_x.py"))


def failed(step: int, message: str, evaluated: bool = True, parent: int = 0) -> StepRecord:
    kind = StepKind.SMALL if parent else StepKind.LARGE
    node = NodeState(Plan(step, kind, parent), 1, 1, 0.0, 0.0, NO_SCORE, step + 1, 0, NO_SCORE)
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
        unseen = failed(2, "another", evaluated=False)
        memory.task_finished(TASK, [failed(1, "not callable"), unseen, failed(3, "not callable", parent=1)])
        assert memory.rules() == ()
        memory.task_finished(replace(TASK, problem_id="3"), [failed(1, "not callable")])
    assert memory.rules() == (RULE,)
    assert [rule.count for rule in read_rules(tmp_path / "m.txt")] == [2]
    assert len(model.requests) == 1
    assert "task 1_3 brought 1 new rules and raised 0; 1 requests, cost $0.0000" in caplog.text


def test_steps_of_a_forked_run_are_not_counted_again(tmp_path: Path) -> None:
    config = RunConfig.model_validate({"memory_update": True, "general_memory_path": str(tmp_path / "m.txt")})
    steps = [failed(1, "not callable"), failed(2, "not callable")]
    for run, taken in (("run", 0), ("fork", 1)):
        memory = open_memory(config, StubModel(lambda _: RULE), tmp_path / run)
        memory.task_finished(TASK, steps, taken)
    assert [rule.count for rule in read_rules(tmp_path / "m.txt")] == [3]  # the fork made step 2 itself


def test_a_run_warns_of_a_memory_verified_elsewhere_and_leaves_retired_rules_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.jsonl"
    retired = Rule("You cannot old.", 9, verified=(Verified("3.7.1", "sm_90", False),))
    write_rules(path, [retired, Rule(RULE, 9, verified=(Verified("3.7.1", "sm_90", True),))])
    config = RunConfig.model_validate({"general_memory_path": str(path)})
    model = StubModel(lambda _: RULE)

    def judge(triton: str) -> JudgeIdentity:
        return JudgeIdentity("cpu", "CPU", (("triton", triton),))

    assert open_memory(config, model, tmp_path, judge("3.7.1")).rules() == (RULE,)
    assert not caplog.records
    assert open_memory(config, model, tmp_path, judge("3.9.0")).rules() == ("You cannot old.", RULE)
    (record,) = caplog.records
    assert "verified with Triton 3.7.1, the judge has 3.9.0" in record.getMessage()

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from adaexplore.core.plan import StepKind
from adaexplore.core.task import Task
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.run.estimate import KERNEL_TOKENS, REVIEW_TOKENS, estimate
from adaexplore.settings.config import RunConfig

TASK = Task(1, "1", "1_x", "class Model: ...\n", "fp32", Path("1_x.py"))
FACTS = JudgeFacts("NVIDIA H200", "Hopper", "fp32", "off", 1e-3, 5, 100, 10)


def test_only_preset_paper_has_separate_review_requests() -> None:
    paper, default = (
        estimate(RunConfig(preset=preset, total_steps=20), [TASK], FACTS, ())
        for preset in ("paper", "default")
    )
    assert paper.requests > paper.steps == 20
    assert default.requests == default.steps == 20


def test_without_reviewer_no_review_is_counted() -> None:
    for preset in ("paper", "default"):
        config = RunConfig(preset=preset, total_steps=20)
        reviewed = estimate(config, [TASK], FACTS, ())
        plain = estimate(config.model_copy(update={"disable_reviewer": True}), [TASK], FACTS, ())
        edits = all_actions()[StepKind.SMALL].reply_tokens
        small = (20 * KERNEL_TOKENS - plain.least_output_tokens) // (KERNEL_TOKENS - edits)
        assert small > 0
        assert reviewed.least_output_tokens - plain.least_output_tokens == small * REVIEW_TOKENS
        assert plain.requests == 20


def test_more_tasks_cost_more() -> None:
    config = RunConfig(total_steps=5)
    one, two = (
        estimate(config, tasks, FACTS, ()) for tasks in ([TASK], [TASK, replace(TASK, problem_id="2")])
    )
    assert two.steps == 2 * one.steps
    assert two.input_tokens > one.input_tokens


def test_shown_kernel_has_the_usual_length() -> None:
    none, five = (
        estimate(RunConfig(preset="default", total_steps=30, pool_size=size), [TASK], FACTS, ())
        for size in (0, 5)
    )
    assert five.input_tokens - none.input_tokens > 20 * KERNEL_TOKENS

"""The prompts of preset ``paper``: one template per kind of step, not arranged for prompt caches."""

from __future__ import annotations

from adaexplore.core.task import Task
from adaexplore.prompts.blocks import (
    JudgeFacts,
    contract_block,
    fence_for,
    hardware_values,
    judge_sentence,
    kernel_block,
    kernel_blocks,
    rules_block,
)
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.view import View


def large_prompt(task: Task, facts: JudgeFacts, view: View, _: str) -> Prompt:
    """Ask for a new kernel that differs in structure from those shown, the elite printed first."""
    pool = ""
    if view.elite:
        pool += render("pool_elite", kernels=kernel_blocks(view.elite, facts)) + "\n\n"
    if view.recent:
        pool += render("pool_recent", kernels=kernel_blocks(view.recent, facts)) + "\n\n"
    return Prompt(
        render(
            "large",
            contract=contract_block(facts),
            example=render("example") + "\n\n" if view.example else "",
            pool=pool,
            **_common(task, facts, view),
        )
    )


def review_prompt(task: Task, facts: JudgeFacts, view: View) -> Prompt:
    """Ask for the one to three most important changes to the last kernel, the only one shown."""
    kernel = kernel_block(0, view.recent[-1], facts)
    return Prompt(render("review", kernel=kernel, **_common(task, facts, view)))


def small_prompt(task: Task, facts: JudgeFacts, view: View, guidance: str) -> Prompt:
    """Ask for edits of the last kernel (oldest first) that follow ``guidance``."""
    return Prompt(
        render(
            "small",
            kernels=kernel_blocks(view.recent, facts),
            guidance=guidance,
            judge=judge_sentence(facts),
            **_common(task, facts, view),
        )
    )


def _common(task: Task, facts: JudgeFacts, view: View) -> dict[str, str]:
    return {
        "rules": rules_block(view.rules),
        "hardware": render("hardware", **hardware_values(facts)),
        "fence": fence_for(task.reference),
        "reference": task.reference.strip("\n"),
    }

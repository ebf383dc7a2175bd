"""The prompts of the search's steps, put together out of templates and shared blocks."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.core.task import Task
from adaexplore.prompts.blocks import (
    JudgeFacts,
    ShownKernel,
    accuracy_sentence,
    fence_for,
    hardware_block,
    kernel_block,
    kernel_blocks,
    rules_block,
)
from adaexplore.prompts.render import render


def large_prompt(
    task: Task,
    facts: JudgeFacts,
    rules: Sequence[str],
    elite: Sequence[ShownKernel],
    recent: Sequence[ShownKernel],
    *,
    with_example: bool,
) -> str:
    """Ask for a new kernel that differs in structure from those shown.

    Fixed blocks come first, the pool last. ``elite`` is printed before ``recent``; either may be
    empty. ``with_example`` adds a worked answer that shows the form.
    """
    pool = ""
    if elite:
        pool += render("pool_elite", kernels=kernel_blocks(elite, facts)) + "\n\n"
    if recent:
        pool += render("pool_recent", kernels=kernel_blocks(recent, facts)) + "\n\n"
    return render(
        "large",
        trials=facts.trials,
        tolerance=f"{facts.tolerance:g}",
        accuracy=accuracy_sentence(facts),
        timed_runs=facts.timed_runs,
        warmup_runs=facts.warmup_runs,
        example=render("example") + "\n\n" if with_example else "",
        rules=rules_block(rules),
        hardware=hardware_block(facts),
        fence=fence_for(task.reference),
        reference=task.reference.strip("\n"),
        pool=pool,
    )


def review_prompt(task: Task, facts: JudgeFacts, rules: Sequence[str], kernel: ShownKernel) -> str:
    """Ask for the one to three most important changes to ``kernel``."""
    return render(
        "review",
        rules=rules_block(rules),
        hardware=hardware_block(facts),
        fence=fence_for(task.reference),
        reference=task.reference.strip("\n"),
        kernel=kernel_block(0, kernel, facts),
    )


def small_prompt(
    task: Task, facts: JudgeFacts, rules: Sequence[str], chain: Sequence[ShownKernel], guidance: str
) -> str:
    """Ask for edits of the last kernel of ``chain`` (oldest first) that follow ``guidance``."""
    return render(
        "small",
        rules=rules_block(rules),
        hardware=hardware_block(facts),
        fence=fence_for(task.reference),
        reference=task.reference.strip("\n"),
        kernels=kernel_blocks(chain, facts),
        guidance=guidance.strip() or render("guidance_default"),
        tolerance=f"{facts.tolerance:g}",
        accuracy=accuracy_sentence(facts),
        trials=facts.trials,
    )


def repair_prompt(source: str, edits: str, reason: str, nearest: str) -> str:
    """Send a failed edit back: the kernel, the reply, the reason and the nearest lines."""
    return render(
        "repair",
        fence=fence_for(source),
        source=source.rstrip("\n"),
        edits=edits.strip(),
        reason=reason,
        nearest=f"The nearest lines:\n{nearest}\n" if nearest else "",
    )

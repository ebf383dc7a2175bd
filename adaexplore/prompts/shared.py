"""The prompts of preset ``default``: all steps of a task begin alike, what they add comes last.

A prompt is the fixed part of the run, the module of the task, the kernels in view from the oldest on, and
at its end what to do now. So a service that keeps beginnings reads them from its cache: the first
two parts in every request, the kernels where an earlier request had them in this order. No step sends them
twice: the review of a small step stands in the answer that brings the edits, before them. Nor does a pool
hold the same lines twice: a kernel that is nearly another one of it is told by their differences.
"""

from __future__ import annotations

from adaexplore.core.task import Task
from adaexplore.core.tunables import MAX_CHOICES, MAX_NAMES
from adaexplore.prompts.blocks import (
    JudgeFacts,
    ShownKernel,
    changes_block,
    code_block,
    contract_block,
    fence_for,
    hardware_block,
    kernel_block,
    rules_block,
)
from adaexplore.prompts.profile import profile_text
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.view import View

MOST_CHANGED = 1 / 3
"""Length of the differences between two kernels, as a share of the whole file, up to which they are shown."""


def large_prompt(task: Task, facts: JudgeFacts, view: View, direction: str = "") -> Prompt:
    """Ask for a new kernel that differs in structure from those shown."""
    best = max(range(len(view.kernels)), key=lambda index: _speedup(view.kernels[index]), default=None)
    aim = render("aim_first" if best is None else "aim_other")
    return _prompt(task, facts, view, _kernels(view, facts, best), render("now_large", aim=aim) + direction)


def small_prompt(task: Task, facts: JudgeFacts, view: View, guidance: str) -> Prompt:
    """Ask for edits of the last kernel that follow ``guidance``."""
    last = len(view.kernels) - 1
    now = render("now_small", index=last, guidance=guidance)
    return _prompt(task, facts, view, _kernels(view, facts, last), now)


def _prompt(task: Task, facts: JudgeFacts, view: View, kernels: tuple[str, ...], now: str) -> Prompt:
    tunables = ""
    if facts.tunes:
        tunables = render("tunables", names=MAX_NAMES, choices=MAX_CHOICES) + "\n\n"
    fixed = render(
        "shared",
        contract=contract_block(facts),
        tunables=tunables,
        example=render("example") + "\n\n" if view.example else "",
        rules=rules_block(view.rules),
        hardware=hardware_block(facts),
    )
    module = render("module", fence=fence_for(task.reference), reference=task.reference.strip("\n"))
    return Prompt(now, f"{fixed}\n\n", f"{module}\n\n", kernels)


def _kernels(view: View, facts: JudgeFacts, profiled: int | None) -> tuple[str, ...]:
    """The kernels in view, then the profile of one of them, so that what precedes it stays as it is."""
    shown = enumerate(zip(view.kernels, _codes(view), strict=True))
    blocks = [f"{kernel_block(index, kernel, facts, code)}\n\n" for index, (kernel, code) in shown]
    if blocks:
        blocks[0] = f"## Kernels so far\n{blocks[0]}"
    profile = None if profiled is None else view.kernels[profiled].profile
    if profiled is not None and profile is not None and view.profiled:
        blocks.append(render("profile", index=profiled, profile=profile_text(profile)) + "\n\n")
    return tuple(blocks)


def _codes(view: View) -> tuple[str, ...]:
    """The code of each kernel; in a pool, of one that is nearly an earlier one, their differences.

    Nothing depends on later kernels, so that what another prompt begins with stays as it is.
    """
    codes = [code_block(kernel.source) for kernel in view.kernels]
    whole: list[int] = []
    for index, kernel in enumerate(() if view.edits_last else view.kernels):
        told = (changes_block(base, view.kernels[base].source, kernel.source) for base in whole)
        shortest = min(told, key=len, default=None)
        if shortest is None or len(shortest) > MOST_CHANGED * len(codes[index]):
            whole.append(index)
        else:
            codes[index] = shortest
    return tuple(codes)


def _speedup(kernel: ShownKernel) -> float:
    return 0.0 if kernel.verdict is None else kernel.verdict.speedup or 0.0

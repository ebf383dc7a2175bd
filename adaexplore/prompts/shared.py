"""The prompts of preset ``default``: all steps of a task share a prefix, new text comes last.

A prompt has the fixed part of the run, the module of the task, the shown kernels from the oldest on, and
at the end the request. A service with a prompt cache reads the first two parts of every request from it,
and the kernels if an earlier request had them in this order. No step sends the kernels twice: in a small
step the review and the edits are one answer. Near-duplicate pool kernels are shown as diffs.
"""

from __future__ import annotations

from adaexplore.core.draft import ShownKernel
from adaexplore.core.environment import ReferenceFacts
from adaexplore.core.task import Task
from adaexplore.core.text.tunables import MAX_CHOICES, MAX_NAMES
from adaexplore.prompts.blocks import (
    JudgeFacts,
    changes_block,
    code_block,
    fence_for,
    kernel_block,
    rules_block,
)
from adaexplore.prompts.facts import measured_block, reference_block
from adaexplore.prompts.profile import profile_text
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.render import render
from adaexplore.prompts.view import View

MOST_CHANGED = 1 / 3
"""Maximum length of a diff between two kernels, as a share of the whole file."""


def step_prompt(
    task: Task, facts: JudgeFacts, reference: ReferenceFacts | None, view: View, now: str
) -> Prompt:
    """Ask for a kernel, or for edits of the last one, as ``now`` says."""
    tunables = ""
    if facts.tunes:
        tunables = render("tunables", names=MAX_NAMES, choices=MAX_CHOICES) + "\n\n"
    fixed = render(
        "shared",
        tunables=tunables,
        example=render("example") + "\n\n" if view.example else "",
        rules=rules_block(view.rules),
        measured=measured_block(facts),
    )
    module = render("module", fence=fence_for(task.reference), reference=task.reference.strip("\n"))
    known = reference_block(facts, task, reference)
    return Prompt(now, f"{fixed}\n\n", f"{module}\n\n{known}", _kernels(view, facts))


def _kernels(view: View, facts: JudgeFacts) -> tuple[str, ...]:
    """Return the shown kernels, then the profile of the edited or the fastest one.

    The text before the profile does not change.
    """
    shown = enumerate(zip(view.kernels, _codes(view), strict=True))
    blocks = [f"{kernel_block(index, kernel, facts, code)}\n\n" for index, (kernel, code) in shown]
    if not blocks:
        return ()
    blocks[0] = f"## Kernels so far\n{blocks[0]}"
    last = len(view.kernels) - 1
    based = last if view.edits_last else max(range(last + 1), key=lambda index: _speedup(view.kernels[index]))
    profile = view.kernels[based].profile
    if profile is not None and view.profiled:
        told = facts.measured(profile_text(profile))
        blocks.append(render("profile", index=based, profile=told) + "\n\n")
    return tuple(blocks)


def _codes(view: View) -> tuple[str, ...]:
    """Return the code of each kernel; near-duplicate pool kernels are shown as diffs.

    Nothing depends on later kernels, so that prompts keep a common prefix.
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

"""The type of a step action, and all actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from adaexplore.core.files.declarations import declared
from adaexplore.core.plan import Purpose, StepKind
from adaexplore.core.task import Task
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.prompt import Prompt
from adaexplore.prompts.view import View


@dataclass(frozen=True)
class StepAction:
    """What a kind of step asks the model; its kind says whether the answer is edits or a whole file.

    Attributes:
        kind: its name in records.
        purpose: the purpose of its request.
        request: returns the end of its prompt in layout ``shared``, from what is shown and the guidance.
        paper: returns its whole prompt in layout ``paper``.
        reviewed: whether the shown kernels are reviewed before; the review is the guidance.
        reply_tokens: usual length of the answer, for estimates.
    """

    kind: StepKind
    purpose: Purpose
    request: Callable[[View, str], str]
    paper: Callable[[Task, JudgeFacts, View, str], Prompt]
    reviewed: bool
    reply_tokens: int


@cache
def all_actions() -> Mapping[StepKind, StepAction]:
    """Return the ``ACTION`` of every module of this package that has one, by kind."""
    return {action.kind: action for action in declared("adaexplore.prompts.actions", "ACTION")}

"""What the search policy wants next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepKind(StrEnum):
    """How a node came about."""

    DUMMY_ROOT = "dummy_root"
    LARGE = "large_step"
    SMALL = "small_step"


@dataclass(frozen=True)
class Plan:
    """One decision of a search policy; node 0 is the dummy root, node ids are step numbers.

    Attributes:
        step: 1-based step number, also the id of the node that it will make.
        kind: ``LARGE`` (a new kernel from a pool) or ``SMALL`` (edits of the last context node).
        parent_id: the node under which the new one hangs.
        context_ids: nodes shown to the model, in this order; a small step's chain is oldest first, and it
            edits the last one.
        elite_ids: nodes shown in a block of their own before the context (IRB, IRLE).
        direction: what to try, by name (prompts/templates/directions.yaml); "" leaves it to the model.
        banned: nodes that a person took out of the search before it was decided.
        note: what a person wants the model to read; it ends the prompt.
    """

    step: int
    kind: StepKind
    parent_id: int
    context_ids: tuple[int, ...] = ()
    elite_ids: tuple[int, ...] = ()
    direction: str = ""
    note: str = ""
    banned: tuple[int, ...] = ()

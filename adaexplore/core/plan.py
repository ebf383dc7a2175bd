"""Plans of a search policy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepKind(StrEnum):
    """The kind of a step."""

    DUMMY_ROOT = "dummy_root"
    LARGE = "large_step"
    SMALL = "small_step"


@dataclass(frozen=True)
class Plan:
    """One decision of a search policy; node 0 is the dummy root, node ids are step numbers.

    Attributes:
        step: step number from 1, also the id of its node.
        kind: ``LARGE`` (a new kernel from a pool) or ``SMALL`` (edits of the last context node).
        parent_id: the parent of the new node.
        context_ids: nodes shown to the model, in this order; a small step's chain is oldest first, and it
            edits the last one.
        elite_ids: nodes shown in a separate block before the context (IRB, IRLE).
        direction: what to try, by name (prompts/templates/directions.yaml); "" leaves it to the model.
        banned: nodes that the user had banned when the plan was made.
        note: the user's note at the end of the prompt.
    """

    step: int
    kind: StepKind
    parent_id: int
    context_ids: tuple[int, ...] = ()
    elite_ids: tuple[int, ...] = ()
    direction: str = ""
    note: str = ""
    banned: tuple[int, ...] = ()

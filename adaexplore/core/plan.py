"""Plans of a search policy."""

from dataclasses import dataclass
from enum import StrEnum


class StepKind(StrEnum):
    DUMMY_ROOT = "dummy_root"
    LARGE = "large_step"
    SMALL = "small_step"


@dataclass(frozen=True)
class Plan:
    """One decision of a search policy; node 0 is the dummy root, node ids are step numbers."""

    step: int  # step number from 1, also the id of its node
    kind: StepKind  # ``LARGE`` (a new kernel from a pool) or ``SMALL`` (edits of the last context node)
    parent_id: int  # the parent of the new node
    # nodes shown to the model, in this order; a small step's chain is oldest first, and it edits the last one
    context_ids: tuple[int, ...] = ()
    elite_ids: tuple[int, ...] = ()  # nodes shown in a separate block before the context (IRB, IRLE)
    direction: str = ""  # what to try, by name (prompts/templates/directions.yaml); "" leaves it to the model
    note: str = ""  # the user's note at the end of the prompt
    banned: tuple[int, ...] = ()  # nodes that the user had banned when the plan was made

"""Plans of a search policy, kinds of steps, and purposes of requests to a model."""

from dataclasses import dataclass
from enum import StrEnum


class StepKind(StrEnum):
    DUMMY_ROOT = "dummy_root"
    LARGE = "large_step"
    SMALL = "small_step"

    @property
    def edits(self) -> bool:
        """Whether the step edits the last kernel that it shows; else it writes a whole file."""
        match self:
            case StepKind.SMALL:
                return True
            case StepKind.LARGE | StepKind.DUMMY_ROOT:
                return False

    @property
    def label(self) -> str:
        return self.value.removesuffix("_step")


class Purpose(StrEnum):
    """The purpose of a request, so that no client has to guess it from the text."""

    LARGE = "large"
    REVIEW = "review"
    SMALL = "small"
    REPAIR = "repair"
    RULE = "rule"
    MERGE = "merge"
    TASK = "task"


@dataclass(frozen=True)
class Plan:
    """One decision of a search policy; node 0 is the dummy root, node ids are step numbers."""

    step: int  # step number from 1, also the id of its node
    kind: StepKind  # what the model is asked for (``prompts/actions``)
    parent_id: int  # the parent of the new node
    # nodes shown to the model, in order; a step that edits has a chain, oldest first, and edits the last one
    context_ids: tuple[int, ...] = ()
    elite_ids: tuple[int, ...] = ()  # nodes shown in a separate block before the context (IRB, IRLE)
    direction: str = ""  # what to try, by name (prompts/templates/directions.yaml); "" leaves it to the model
    note: str = ""  # the user's note at the end of the prompt
    banned: tuple[int, ...] = ()  # nodes that the user had banned when the plan was made

"""One finished step of a search: its node in the tree, its draft, its verdict."""

from dataclasses import dataclass

from adaexplore.core.draft import AS_BEFORE, Draft, DraftOutcome
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import Score, Verdict

NO_KERNEL = {
    DraftOutcome.UNCHANGED: ("unchanged", "the edits leave the program as it was"),
    DraftOutcome.EDIT_FAILED: ("not applied", "the edits do not fit the program"),
    DraftOutcome.EMPTY: ("empty", "the model's reply was empty"),
    DraftOutcome.REFUSED: ("refused", "the model declined to answer"),
    DraftOutcome.CUT: ("cut", "the reply was cut by the token limit"),
    DraftOutcome.NO_CODE: ("no code", "no code was found in the reply"),
}
"""Outcomes without a new kernel: a word and a sentence for each."""


@dataclass(frozen=True)
class StepResult:
    """What a step is called and counted as: the verdict on its kernel, or why it has no new one.

    A step whose edits failed keeps the kernel of its parent. The search goes on with the parent's verdict,
    which is ``recorded`` for the step too, but is not the step's own.
    """

    kind: StepKind
    outcome: DraftOutcome
    recorded: Verdict | None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the step's own kernel; None if it has no new kernel, or nothing to judge."""
        return None if self.outcome in AS_BEFORE else self.recorded

    @property
    def edit_failed(self) -> bool:
        """Whether edits made no new kernel."""
        is_edit = self.kind.edits or self.outcome in AS_BEFORE
        return is_edit and self.verdict is None and self.outcome in NO_KERNEL

    @property
    def name(self) -> str:
        """The verdict's status, or such as ``edit failed (unchanged)``, ``no kernel (empty)``."""
        if self.verdict is not None:
            return self.verdict.status.value
        if self.outcome not in NO_KERNEL:
            return "nothing to judge"
        word = NO_KERNEL[self.outcome][0]
        return f"edit failed ({word})" if self.edit_failed else f"no kernel ({word})"

    @property
    def why(self) -> str:
        """A sentence that says why there is no new kernel; "" if there is one."""
        return NO_KERNEL[self.outcome][1] if self.verdict is None and self.outcome in NO_KERNEL else ""


@dataclass(frozen=True)
class NodeState:
    """A node right after it was observed; statistics as ``step_k_log.json`` stores them.

    The node's id is the step number; step 0 is the dummy root.
    """

    plan: Plan
    depth: int
    visits: int
    total_reward: float
    max_reward: float
    score: Score
    total_nodes: int
    global_best_node_id: int
    global_best_score: Score


@dataclass(frozen=True)
class StepRecord:
    node: NodeState
    draft: Draft
    # the verdict that the search goes on with; None if there was nothing to judge. If edits failed it is the
    # parent's: ``result`` has the step's own
    verdict: Verdict | None
    evaluated: bool  # whether the judge was asked; False if a known verdict was reused
    written: str | None = None  # the source as the model wrote it, if a config sweep changed it; else None
    pinned: bool = False  # whether the user chose the node that it edits

    @property
    def result(self) -> StepResult:
        return StepResult(self.node.plan.kind, self.draft.outcome, self.verdict)

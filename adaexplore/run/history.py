"""What a search has seen so far: kernels by node, verdicts by identity."""

from __future__ import annotations

from collections.abc import Iterable

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.identity import source_identity
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import NO_SCORE, Score, Verdict
from adaexplore.prompts.blocks import ShownKernel


class History:
    """Grows by one record a step; node 0 is the empty root.

    ``best`` is the search's own, as the paper has it; ``best_clean`` is the best of the
    correct ones about which the judge has no suspicion.
    """

    def __init__(self) -> None:
        self.best = ShownKernel("", None)
        self.best_clean = ShownKernel("", None)
        self._shown: dict[int, ShownKernel] = {}
        self._known: dict[str, Verdict] = {}

    @property
    def next_step(self) -> int:
        """The number of the first step that is not there."""
        return max(self._shown, default=0) + 1

    def add(self, record: StepRecord) -> None:
        """Take in a finished step."""
        kernel = ShownKernel(record.draft.source, record.verdict)
        self._shown[record.node.plan.step] = kernel
        if record.verdict is not None:
            self._known.setdefault(source_identity(record.draft.source), record.verdict)
        if score_of(record.verdict) > score_of(self.best.verdict):
            self.best = kernel
        clean = record.verdict is not None and record.verdict.correct and not record.verdict.suspect_flags
        if clean and score_of(record.verdict) > score_of(self.best_clean.verdict):
            self.best_clean = kernel

    def shown(self, node_ids: Iterable[int]) -> tuple[ShownKernel, ...]:
        """The kernels of ``node_ids``, in their order."""
        return tuple(self._shown[node_id] for node_id in node_ids)

    def verdict_on(self, source: str) -> Verdict | None:
        """The verdict on an equal program, if there was one."""
        return self._known.get(source_identity(source))


def score_of(verdict: Verdict | None) -> Score:
    """The search's order; nothing to judge is the lowest score."""
    return NO_SCORE if verdict is None else verdict.score


def judgeable(outcome: DraftOutcome, source: str) -> bool:
    """Whether a draft is a candidate at all."""
    kept = (DraftOutcome.WRITTEN, DraftOutcome.UNCHANGED, DraftOutcome.EDIT_FAILED)
    return outcome in kept and bool(source.strip())

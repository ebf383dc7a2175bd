"""What one reply holds: a source, or a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.text.edits import EditError
from adaexplore.core.verdict import Verdict

NO_CODE = "There is no code in your answer."
_NO_EDITS = "There are no edits in your answer."
_RANKS = (
    DraftOutcome.WRITTEN,
    DraftOutcome.UNCHANGED,
    DraftOutcome.LINT_STOPPED,
    DraftOutcome.GATE_STOPPED,
    DraftOutcome.EDIT_FAILED,
    DraftOutcome.NO_CODE,
    DraftOutcome.EMPTY,
    DraftOutcome.REFUSED,
    DraftOutcome.CUT,
)
"""From best to worst."""


@dataclass(frozen=True)
class Attempt:
    """The parsed content of a reply.

    Attributes:
        outcome: how the step ends if this attempt stands.
        source: the candidate; the parent's source if edits failed.
        reason: why the reply may be sent back; None if nothing is wrong.
        objection: the fault, as text for the model.
        verdict: the verdict if it is already certain.
        rewritten: whether a small step's reply holds a whole file in place of edits.
    """

    outcome: DraftOutcome
    source: str
    reason: RepairReason | None = None
    objection: str = ""
    verdict: Verdict | None = None
    rewritten: bool = False


def best_attempt(attempts: Sequence[Attempt]) -> Attempt:
    """Return the last attempt without objections, else the last one with the best outcome."""
    return min(
        reversed(attempts), key=lambda attempt: (_RANKS.index(attempt.outcome), attempt.reason is not None)
    )


def told(error: EditError) -> str:
    """Return the fault of edits as text for the model."""
    if error.index is None:
        return _NO_EDITS
    fault = str(error)[:1].upper() + str(error)[1:] + ", so none of them was applied."
    return f"{fault}\nThe nearest lines:\n{error.nearest}" if error.nearest else fault

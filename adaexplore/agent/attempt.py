"""Read one reply: it holds a source, or has a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.text.code_blocks import extract_code
from adaexplore.core.text.edits import EditError, apply_edits, parse_edits
from adaexplore.core.text.identity import source_identity
from adaexplore.core.verdict import Verdict

_NO_CODE = "There is no code in your answer."
_NO_EDITS = "There are no edits in your answer."
_NO_CHANGE = (
    "The edits leave the program as it was: comments, formatting and names of files are no change. "
    "Make one that has an effect."
)
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
    """

    outcome: DraftOutcome
    source: str
    reason: RepairReason | None = None
    objection: str = ""
    verdict: Verdict | None = None


def read_edits(reply: str, parent: str) -> Attempt:
    """Apply the edits of ``reply`` to ``parent``, all or none."""
    try:
        source = apply_edits(parent, parse_edits(reply))
    except EditError as error:
        return Attempt(DraftOutcome.EDIT_FAILED, parent, RepairReason.EDIT, _told(error))
    if source_identity(source) == source_identity(parent):
        return Attempt(DraftOutcome.UNCHANGED, source, RepairReason.UNCHANGED, _NO_CHANGE)
    return Attempt(DraftOutcome.WRITTEN, source)


def read_kernel(reply: str, written: str = "") -> Attempt:
    """Return the file in ``reply``, or the previous file ``written`` with the reply's edits."""
    edits = parse_edits(reply) if written else ()
    if edits:
        try:
            return Attempt(DraftOutcome.WRITTEN, apply_edits(written, edits))
        except EditError as error:
            return Attempt(DraftOutcome.NO_CODE, "", RepairReason.EDIT, _told(error))
    source = extract_code(reply)
    if source is None or not source.strip():
        return Attempt(DraftOutcome.NO_CODE, "", RepairReason.FORMAT, _NO_CODE)
    return Attempt(DraftOutcome.WRITTEN, source)


def best_attempt(attempts: Sequence[Attempt]) -> Attempt:
    """Return the last attempt without objections, else the last one with the best outcome."""
    return min(
        reversed(attempts), key=lambda attempt: (_RANKS.index(attempt.outcome), attempt.reason is not None)
    )


def _told(error: EditError) -> str:
    if error.index is None:
        return _NO_EDITS
    told = str(error)[:1].upper() + str(error)[1:] + ", so none of them was applied."
    return f"{told}\nThe nearest lines:\n{error.nearest}" if error.nearest else told

"""What one reply comes to: a source, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.code_blocks import extract_code
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.edits import EditError, apply_edits, parse_edits
from adaexplore.core.identity import source_identity
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
)


@dataclass(frozen=True)
class Attempt:
    """One reading of a reply.

    Attributes:
        outcome: how the step ends if this attempt stands.
        source: the candidate; the parent's where edits failed.
        reason: why the reply may be sent back; None where nothing is wrong.
        objection: what is wrong, for the model.
        verdict: what is already sure about the source.
    """

    outcome: DraftOutcome
    source: str
    reason: RepairReason | None = None
    objection: str = ""
    verdict: Verdict | None = None


def read_edits(reply: str, parent: str) -> Attempt:
    """The edits of ``reply`` applied to ``parent``, all or none."""
    try:
        source = apply_edits(parent, parse_edits(reply))
    except EditError as error:
        return Attempt(DraftOutcome.EDIT_FAILED, parent, RepairReason.EDIT, _told(error))
    if source_identity(source) == source_identity(parent):
        return Attempt(DraftOutcome.UNCHANGED, source, RepairReason.UNCHANGED, _NO_CHANGE)
    return Attempt(DraftOutcome.WRITTEN, source)


def read_kernel(reply: str, written: str = "") -> Attempt:
    """The file in ``reply``, or ``written``, the file before it, with the reply's edits."""
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
    """The one that a step ends with: the last without objections, else the one that came furthest."""
    return min(
        reversed(attempts), key=lambda attempt: (attempt.reason is not None, _RANKS.index(attempt.outcome))
    )


def _told(error: EditError) -> str:
    if error.index is None:
        return _NO_EDITS
    told = str(error)[:1].upper() + str(error)[1:] + ", so none of them was applied."
    return f"{told}\nThe nearest lines:\n{error.nearest}" if error.nearest else told

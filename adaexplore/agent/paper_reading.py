"""Read a reply as the release does: numbered edits alone in a small step, the first fence in a large one."""

from __future__ import annotations

from adaexplore.agent.attempt import NO_CODE, Attempt, told
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.text.code_blocks import extract_code
from adaexplore.core.text.edits import EditError, apply_edits, parse_edits
from adaexplore.core.text.identity import source_identity

_END_OF_REASONING = "</think>"
_NO_CHANGE = (
    "The edits leave the program as it was: comments, formatting and names of files are no change. "
    "Make one that has an effect."
)


def answer_in(reply: str) -> str:
    """Return what follows the last ``</think>``; the whole reply if it has none."""
    _, tag, answer = reply.rpartition(_END_OF_REASONING)
    return answer.lstrip() if tag else reply


def read(answer: str, parent: str | None, written: str) -> Attempt:
    """Return the source of an answer; see :class:`~adaexplore.agent.reading.Reading`."""
    return _read_kernel(answer, written) if parent is None else _read_edits(answer, parent)


def _read_edits(reply: str, parent: str) -> Attempt:
    """Apply the edits of ``reply`` to ``parent``, all or none."""
    try:
        source = apply_edits(parent, parse_edits(reply))
    except EditError as error:
        return Attempt(DraftOutcome.EDIT_FAILED, parent, RepairReason.EDIT, told(error))
    if source_identity(source) == source_identity(parent):
        return Attempt(DraftOutcome.UNCHANGED, source, RepairReason.UNCHANGED, _NO_CHANGE)
    return Attempt(DraftOutcome.WRITTEN, source)


def _read_kernel(reply: str, written: str = "") -> Attempt:
    """Return the file in ``reply``, or the previous file ``written`` with the reply's edits."""
    edits = parse_edits(reply) if written else ()
    if edits:
        try:
            return Attempt(DraftOutcome.WRITTEN, apply_edits(written, edits))
        except EditError as error:
            return Attempt(DraftOutcome.NO_CODE, "", RepairReason.EDIT, told(error))
    source = extract_code(reply)
    if source is None or not source.strip():
        return Attempt(DraftOutcome.NO_CODE, "", RepairReason.FORMAT, NO_CODE)
    return Attempt(DraftOutcome.WRITTEN, source)
